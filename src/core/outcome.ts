/**
 * How a destination answered for one entry of a request.
 * - `accepted`: confirmed by the broker.
 * - `refused`, fault `event`: it can never be sent unchanged (malformed, oversize, invalid characters).
 * - `refused`, fault `transient`: refused now, for no reason that lies in the event.
 * - `refused`, fault `destination`: throttled, access denied, missing, KMS: nothing the event could cause.
 * - `missing`: the answer names it neither among the accepted nor among the refused; what happened to it is unknown.
 */
export type EntryAnswer =
  | { readonly kind: 'accepted'; readonly messageId: string }
  | {
      readonly kind: 'refused'
      readonly fault: 'event' | 'transient' | 'destination'
      readonly code: string
      readonly reason: string
      /** It will not heal by waiting, and concerns every event of the destination. */
      readonly configuration?: true
    }
  | { readonly kind: 'missing' }

/**
 * How a destination answered a request.
 * - `answered`: one answer per message, in the order sent.
 * - `request-fault`: refused whole because of what is in it (too long, invalid entry): halve it until the culprit stands alone.
 * - `destination-fault`: failed whole for a reason no event causes (throttled, 5xx, network, timeout, rights, missing). Whether
 *   anything arrived is unknown. `configuration`: it will not heal by waiting (access denied, missing queue or bus, KMS).
 *   `timedOut`: there was no answer within the request timeout.
 */
export type PublishAnswer =
  | { readonly kind: 'answered'; readonly entries: readonly EntryAnswer[] }
  | { readonly kind: 'request-fault'; readonly code: string; readonly reason: string }
  | {
      readonly kind: 'destination-fault'
      readonly code: string
      readonly reason: string
      readonly configuration: boolean
      readonly timedOut?: true
    }

/** What the relay makes of one event: this is what is settled. */
export type Outcome =
  | { readonly kind: 'published'; readonly destination: string; readonly messageId: string }
  | {
      readonly kind: 'retry'
      /** Whole milliseconds. */
      readonly delayMs: number
      readonly charge: boolean
      readonly destination: string | null
      readonly errorCode: string
      readonly error: string
    }
  | {
      /** Put aside until its destination takes it. */
      readonly kind: 'hold'
      readonly destination: string
      /** null, both: it was not sent, and keeps what its last attempt said. */
      readonly errorCode: string | null
      readonly error: string | null
    }
  | {
      readonly kind: 'failed'
      readonly charge: boolean
      /** Whether later events of the same ordering key wait for an operator. */
      readonly block: boolean
      readonly destination: string | null
      readonly errorCode: string
      readonly error: string
    }
