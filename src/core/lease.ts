import type { Clock } from './clock.js'
import type { Deadline } from './deadline.js'

/** Beside the request timeout: what must be left of the lease when a request goes out. */
export const LEASE_MARGIN_MS = 2000

/**
 * How long this relay may rely on its lease. Counted from when a claim or renewal is *sent*, so that the relay's idea of the
 * lease ends before the database's, however slow the call was.
 */
export class Lease implements Deadline {
  #untilMs = Number.NEGATIVE_INFINITY
  #renewAtMs = Number.POSITIVE_INFINITY
  #sentAtMs = 0

  constructor(
    private readonly clock: Clock,
    private leaseSeconds: number,
  ) {}

  get seconds(): number {
    return this.leaseSeconds
  }

  /** The answer says that it was leased for so long. */
  shorten(leaseSeconds: number): void {
    this.leaseSeconds = leaseSeconds
    this.renewed()
    this.#renewAtMs = this.#sentAtMs + (leaseSeconds * 1000) / 3
  }

  /** The claim is about to be sent. */
  begin(): void {
    this.renewalSent()
    this.renewed()
  }

  remainingMs(): number {
    return this.#untilMs - this.clock.nowMs()
  }

  /** At a third of the lease: two renewals may fail before it runs out. */
  renewalIsDue(): boolean {
    return this.renewalDueInMs() <= 0
  }

  renewalDueInMs(): number {
    return this.#renewAtMs - this.clock.nowMs()
  }

  renewalSent(): void {
    this.#sentAtMs = this.clock.nowMs()
    this.#renewAtMs = this.#sentAtMs + (this.leaseSeconds * 1000) / 3
  }

  /** The call that was sent last has worked. */
  renewed(): void {
    this.#untilMs = this.#sentAtMs + this.leaseSeconds * 1000
  }
}
