import { randomUUID } from 'node:crypto'
import type { ServiceRequest } from '../service.js'
import type { EntryCodec } from './entry-codec.js'
import { isObject, jsonAnswer, jsonOf, nameOf, text } from './protocol.js'
import { withBody } from './sqs-entries.js'

/** The answer of `PutEvents`: one result per entry, by index. */
export interface PutEventsAnswer {
  readonly FailedEntryCount: number
  readonly Entries: readonly Readonly<Record<string, string>>[]
}

/** `PutEvents`: answers by index, so a missing entry is an empty result in its place. */
export const eventsEntries: EntryCodec = {
  batch: true,
  entries: (request) =>
    entriesIn(request).map((entry) => ({
      resource: nameOf(entry['EventBusName'] ?? 'default'),
      text: `${text(entry['DetailType'])} ${text(entry['Detail'])}`,
    })),
  without(request, taken) {
    const left = entriesIn(request).filter((_entry, index) => !taken.has(index))
    return left.length === 0 ? undefined : withBody(request, { Entries: left })
  },
  answer(request, rest, decisions) {
    if (rest !== undefined && rest.status !== 200) return rest
    const answered = rest === undefined ? [] : [...(JSON.parse(rest.body.toString()) as PutEventsAnswer).Entries]
    const entries = entriesIn(request).map((_entry, index): Readonly<Record<string, string>> => {
      const decision = decisions.get(index)
      if (decision === undefined) return answered.shift() ?? {}
      if (decision.kind === 'error') return { ErrorCode: decision.code, ErrorMessage: decision.message }
      return decision.kind === 'swallow' ? { EventId: randomUUID() } : {}
    })
    return jsonAnswer('events', {
      FailedEntryCount: entries.filter((entry) => entry['ErrorCode'] !== undefined).length,
      Entries: entries,
    } satisfies PutEventsAnswer)
  },
}

/** An entry that is no object keeps its place, so that indexes stay true. */
function entriesIn(request: ServiceRequest): readonly Record<string, unknown>[] {
  const entries = jsonOf(request)?.['Entries']
  return Array.isArray(entries) ? entries.map((entry) => (isObject(entry) ? entry : {})) : []
}
