import type { Circuits } from './circuits.js'
import type { Clock, Random } from './clock.js'
import type { Deadline } from './deadline.js'
import type { OutboxStore, Telemetry } from './ports.js'
import type { Prepare } from './prepare.js'
import type { RetryPolicy } from './retry-policy.js'
import type { Sender } from './sender.js'

/** What a relay pass is told by the configuration; `src/config/settings.ts` gives units, ranges and defaults. */
export interface RelayPassSettings {
  readonly profile: 'continuous' | 'drain'
  readonly leaseSeconds: number
  readonly claimRows: number
  readonly claimBytes: number
  readonly keyRows: number
  readonly maxShards: number
  readonly requestTimeoutMs: number
  readonly requestsInFlight: number
  readonly idleWaitMs: number
  /** Events that return from aside to one destination, at most, in a second, over all relays. */
  readonly releasePerSecond: number
  readonly policy: RetryPolicy
}

/** What a relay pass did. `published`, `retried` and `failed` count what the database confirmed. */
export interface RelayPassTotals {
  claims: number
  claimed: number
  published: number
  retried: number
  held: number
  failed: number
  unrouted: number
  leaseLost: number
}

/** What all batches of one relay pass share. */
export interface PassContext {
  readonly store: OutboxStore
  readonly settings: RelayPassSettings
  readonly senders: ReadonlyMap<string, Sender>
  readonly circuits: Circuits
  readonly prepare: Prepare
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  /** Who claims, for people who read the lease. */
  readonly owner: string
  /** Beyond it nothing is claimed and nothing sent. */
  readonly deadline: Deadline
  /** Beyond it nothing can be settled any more. */
  readonly hardDeadline: Deadline
  /** Rows the next claim asks for: halved when an answer was too large, doubled again when one was not. */
  readonly claimSize: ClaimSize
  /** Whether suspects wait, as far as answers have shown: then this relay finishes what it has, and takes one of them alone. */
  readonly suspects: { wait: boolean }
  readonly totals: RelayPassTotals
  /** Set when the pass must end early. */
  readonly stop: { requested: boolean }
}

export class ClaimSize {
  #rows: number

  constructor(private readonly maxRows: number) {
    this.#rows = maxRows
  }

  get rows(): number {
    return this.#rows
  }

  wasTooLarge(): void {
    this.#rows = Math.max(1, Math.floor(this.#rows / 2))
  }

  wasFine(): void {
    this.#rows = Math.min(this.maxRows, this.#rows * 2)
  }
}
