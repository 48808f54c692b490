import type { Outcome } from './outcome.js'

/** One event's outcome, with what makes a repeat of the settlement recognisable. */
export interface SettledEvent {
  readonly id: string
  /** Charged attempts as claimed. */
  readonly attempts: number
  /** As claimed: what was replayed since is another delivery. Default 0. */
  readonly replays?: number | undefined
  readonly outcome: Outcome
}

/** Outcomes to record and shards to give back, under one lease token. Names each event at most once. */
export interface Settlement {
  readonly token: string
  readonly events: readonly SettledEvent[]
  /** Shards to give back; null for all that the token leases; empty to keep all. */
  readonly done: readonly number[] | null
}

/** What a settlement changed. `kept + givenBack` = shards that the token still leased when it ran. */
export interface SettleAnswer {
  readonly published: number
  readonly retried: number
  readonly held: number
  readonly failed: number
  /** Followers of unblocked keys that became ready. */
  readonly freed: number
  readonly givenBack: number
  readonly kept: number
  /** Shards whose last settlement came from this token before this call. */
  readonly settledBefore: number
}

/** How many of a settlement's events were recorded, by it or by an earlier sending of it. */
export type SettleVerdict =
  | { readonly kind: 'recorded' }
  /** Another relay took over so many shards: what the settlement said of their events is not recorded. */
  | { readonly kind: 'lease-lost'; readonly shards: number }

/**
 * Tells a settlement that was carried out, now or by an earlier sending whose answer was lost, from one that lost its lease.
 *
 * @param own - shards that the relay counted as leased by the token when it sent the settlement
 * @param givenBackBefore - shards that earlier settlements of the token gave back
 */
export function readSettleAnswer(
  events: readonly SettledEvent[],
  answer: SettleAnswer,
  own: number,
  givenBackBefore: number,
): SettleVerdict {
  const stillLeased = answer.kept + answer.givenBack
  const asked = events.length
  const changed = answer.published + answer.retried + answer.held + answer.failed
  const missing = Math.max(0, own - stillLeased)
  if (missing === 0) return { kind: 'recorded' }
  // its give-back had worked: what is missing was settled by this very token
  const mayBeRepeat = asked === 0 || changed < asked
  if (mayBeRepeat && answer.settledBefore - givenBackBefore === missing) return { kind: 'recorded' }
  return { kind: 'lease-lost', shards: missing }
}
