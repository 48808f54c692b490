import type { Outcome } from './outcome.js'

/** One event's outcome, with what makes a repeat of the settlement recognisable. */
export interface SettledEvent {
  readonly id: string
  /** Charged attempts as claimed. */
  readonly attempts: number
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
