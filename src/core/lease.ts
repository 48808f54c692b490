import type { Clock } from './clock.js'
import type { Deadline } from './deadline.js'

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
    private readonly leaseSeconds: number,
  ) {}

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
