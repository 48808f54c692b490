import { randomUUID } from 'node:crypto'
import type { PutEventsAnswer } from '../front/events-entries.js'
import { ACCOUNT, REGION, isObject, nameOf, text } from '../front/protocol.js'
import type { Bus, Target } from './buses.js'
import { MAX_REQUEST_BYTES, entryBytes, entryProblem } from './entry-problem.js'
import { validation } from './service-error.js'

type EventEntry = Readonly<Record<string, unknown>>

/** Sends one matched event to one target. */
export type Deliver = (target: Target, envelope: string) => Promise<void>

/** `PutEvents`: one result per entry, by index; whole-request errors are thrown. */
export async function putEvents(body: EventEntry, buses: ReadonlyMap<string, Bus>, deliver: Deliver): Promise<PutEventsAnswer> {
  const list = body['Entries']
  if (!Array.isArray(list) || list.length === 0) throw validation("Value at 'entries' must have at least 1 member")
  if (list.length > 10) throw validation(`Value at 'entries' has ${list.length} members, at most 10 are allowed`)
  const entries = list.map((entry: unknown): EventEntry => (isObject(entry) ? entry : {}))
  const bytes = entries.reduce((sum, entry) => sum + entryBytes(entry), 0)
  if (bytes > MAX_REQUEST_BYTES)
    throw validation(`Total size of the entries in the request is over the limit: ${bytes} bytes, at most ${MAX_REQUEST_BYTES}`)
  if (!entries.some((entry) => text(entry['Source']) && text(entry['DetailType']) && text(entry['Detail']))) {
    throw validation('Every entry lacks one of Source, DetailType and Detail')
  }

  const results: Readonly<Record<string, string>>[] = []
  for (const entry of entries) {
    const problem = entryProblem(entry)
    results.push(
      problem === undefined ? await accept(entry, buses, deliver) : { ErrorCode: problem.code, ErrorMessage: problem.message },
    )
  }
  return { FailedEntryCount: results.filter((result) => 'ErrorCode' in result).length, Entries: results }
}

/** As AWS does, a bus that does not exist takes events, and nobody ever sees them. */
async function accept(entry: EventEntry, buses: ReadonlyMap<string, Bus>, deliver: Deliver): Promise<{ EventId: string }> {
  const id = randomUUID()
  const bus = buses.get(nameOf(entry['EventBusName'] ?? 'default'))
  if (bus === undefined) return { EventId: id }

  const seconds = typeof entry['Time'] === 'number' ? Math.floor(entry['Time']) : Math.floor(Date.now() / 1000)
  const head = {
    version: '0',
    id,
    'detail-type': text(entry['DetailType']),
    source: text(entry['Source']),
    account: ACCOUNT,
    time: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'),
    region: REGION,
    resources: Array.isArray(entry['Resources']) ? (entry['Resources'] as string[]) : [],
  }
  const detail = text(entry['Detail'])
  const event: unknown = { ...head, detail: JSON.parse(detail) as unknown }
  // the detail is put in as it came: parsed and written again it could lose digits
  const envelope = `${JSON.stringify(head).slice(0, -1)},"detail":${detail}}`
  const targets = [...bus.rules.values()]
    .filter((rule) => rule.enabled && rule.matches(event))
    .flatMap((rule) => [...rule.targets.values()])
  for (const target of targets) await deliver(target, envelope)
  return { EventId: id }
}
