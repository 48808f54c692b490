import { entriesOf } from '../src/local/front/entries.js'
import { text } from '../src/local/front/protocol.js'
import { snsBatchOf } from '../src/local/front/sns-entries.js'
import { batchOf } from '../src/local/front/sqs-entries.js'
import type { Exchange } from '../src/local/stack.js'

/** What a destination answered for one event, as the injector saw it leave, or get lost. */
export interface EventAnswer {
  readonly eventId: string
  readonly atMs: number
  /** `whole`: the request failed, or its answer was lost, and with it what it said of the entry. */
  readonly kind: 'accepted' | 'refused' | 'missing' | 'whole'
  /** Of a refused entry; of an answer that names no entry at all what the relay calls it. */
  readonly code: string | null
  /** Another entry of the same request was accepted, and the answer left. */
  readonly besideAccepted: boolean
}

/** What the relay writes down for an entry that an answer does not name. */
export const MISSING_CODE = 'UnknownEntry'

const EVENT_ID = /"id":"([0-9a-f]{8}-[0-9a-f-]{27})"/

/** Reads the answer for each event of one request. */
export function readAnswers({ call, answer, answered }: Exchange, atMs: number): readonly EventAnswer[] {
  const ids = entriesOf(call).map((entry) => EVENT_ID.exec(entry.text)?.[1])
  const verdicts = answered && answer?.status === 200 ? verdictsOf({ call, answer, answered }) : undefined
  const accepted = verdicts?.filter((verdict) => verdict === 'accepted').length ?? 0
  return ids.flatMap((eventId, index): EventAnswer[] => {
    if (eventId === undefined) return []
    if (verdicts === undefined) return [{ eventId, atMs, kind: 'whole', code: null, besideAccepted: false }]
    const verdict = verdicts[index] ?? 'missing'
    if (verdict === 'accepted') return [{ eventId, atMs, kind: 'accepted', code: null, besideAccepted: accepted > 1 }]
    const besideAccepted = accepted > 0
    if (verdict === 'missing') return [{ eventId, atMs, kind: 'missing', code: MISSING_CODE, besideAccepted }]
    return [{ eventId, atMs, kind: 'refused', code: verdict.code, besideAccepted }]
  })
}

type Verdict = 'accepted' | 'missing' | { readonly code: string }

/** By the entries' places in the request. */
function verdictsOf({ call, answer }: Exchange): readonly Verdict[] {
  const body = answer?.body.toString() ?? ''
  if (call.service === 'sqs')
    return byId(
      batchOf(call.request).map((entry) => text(entry['Id'])),
      sqsLists(body),
    )
  if (call.service === 'sns')
    return byId(
      snsBatchOf(call.request).map(({ id }) => id),
      snsLists(body),
    )
  const results =
    (JSON.parse(body) as { readonly Entries?: readonly { readonly ErrorCode?: string; readonly EventId?: string }[] }).Entries ??
    []
  return results.map(({ ErrorCode: code, EventId: id }) => {
    if (code !== undefined) return { code }
    return id === undefined ? 'missing' : 'accepted'
  })
}

interface Lists {
  readonly accepted: ReadonlySet<string>
  /** Entry id -> code. */
  readonly refused: ReadonlyMap<string, string>
}

function sqsLists(body: string): Lists {
  type Members = readonly { readonly Id: string; readonly Code: string }[]
  const { Successful = [], Failed = [] } = JSON.parse(body) as { readonly Successful?: Members; readonly Failed?: Members }
  return { accepted: new Set(Successful.map(({ Id }) => Id)), refused: new Map(Failed.map(({ Id, Code }) => [Id, Code])) }
}

function snsLists(body: string): Lists {
  const within = (whole: string, name: string) =>
    [...whole.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, inner = '']) => inner)
  const members = (list: string) => within(within(body, list)[0] ?? '', 'member')
  const field = (member: string, name: string) => within(member, name)[0] ?? ''
  return {
    accepted: new Set(members('Successful').map((member) => field(member, 'Id'))),
    refused: new Map(members('Failed').map((member) => [field(member, 'Id'), field(member, 'Code')])),
  }
}

function byId(ids: readonly string[], { accepted, refused }: Lists): readonly Verdict[] {
  return ids.map((id) => {
    const code = refused.get(id)
    if (code !== undefined) return { code }
    return accepted.has(id) ? 'accepted' : 'missing'
  })
}
