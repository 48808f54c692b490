import type { ServiceRequest, ServiceResponse } from '../service.js'

/** One message in a request, or the request itself where it carries none. */
export interface Entry {
  /** The queue, topic or bus it goes to; '' where there is none. */
  readonly resource: string
  /** What a rule's `match` looks in: the message, or the SQL. */
  readonly text: string
}

/** What becomes of an entry that is taken out of a request. */
export type Decision =
  | { readonly kind: 'error'; readonly code: string; readonly message: string; readonly senderFault: boolean }
  | { readonly kind: 'missing' }
  | { readonly kind: 'swallow' }

export type Decisions = ReadonlyMap<number, Decision>

/** Takes entries out of a request and answers for them; how, is the protocol of each service. */
export interface EntryCodec {
  /** Whether the answer speaks of each entry: only then one can be missing in it. */
  readonly batch: boolean
  entries(request: ServiceRequest): readonly Entry[]
  /** The request without these entries; undefined if none is left. */
  without(request: ServiceRequest, taken: ReadonlySet<number>): ServiceRequest | undefined
  /** The answer to the whole request, from the answer for what was left of it (undefined: nothing was). */
  answer(request: ServiceRequest, rest: ServiceResponse | undefined, decisions: Decisions): ServiceResponse
}
