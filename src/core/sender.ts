import { publishBisecting, type DestinationFault, type Publication } from './bisect.js'
import type { Clock, Random } from './clock.js'
import type { Message, Publisher, Telemetry } from './ports.js'
import { countFaults, retryDelayMs, UNCHARGED_CAP_MS, type RetryPolicy } from './retry-policy.js'

/** A request that is out for longer makes its destination count as slow: nothing more waits for it in a relay's hands. */
export const SLOW_AFTER_MS = 1000
/** So much sooner while the last request failed: what tries a destination that hangs is not worth waiting for. */
export const SLOW_AFTER_FAULT_MS = 200

export interface SenderOptions {
  readonly destination: string
  readonly publisher: Publisher
  /** Requests at the same time. */
  readonly requestsInFlight: number
  readonly policy: RetryPolicy
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  /** Called whenever there may be room for a request again. */
  readonly onRoom: () => void
}

/**
 * One destination as all batches of a relay pass share it: how many requests are out, and whether it makes sense to send.
 *
 * After a request that failed whole it pauses, the longer the more such failures came in a row; then one request alone tries
 * it, and the first acceptance opens it again. While it pauses, or is slow, batches put its events back in place of waiting
 * with their shards leased: so it slows no other destination.
 */
export class Sender {
  /** Requests that are being made up or are out. */
  #busy = 0
  /** Requests that are out -> since when. */
  readonly #out = new Map<symbol, number>()
  #faults = 0
  #lastFault: DestinationFault | undefined
  #lastFaultAtMs = Number.NEGATIVE_INFINITY
  #pausedUntilMs = Number.NEGATIVE_INFINITY

  constructor(private readonly options: SenderOptions) {}

  get publisher(): Publisher {
    return this.options.publisher
  }

  /** Requests, in a row, of which nothing was accepted. */
  get consecutiveFaults(): number {
    return this.#faults
  }

  /** Whether another request may go out now. */
  hasRoom(): boolean {
    if (this.options.clock.nowMs() < this.#pausedUntilMs) return false
    return this.#busy < (this.#faults > 0 ? 1 : this.options.requestsInFlight)
  }

  /** Whether, for how long and why events should be put back in place of waiting for their turn; null: their turn comes soon. */
  putBack(): { readonly delayMs: number; readonly code: string; readonly reason: string } | null {
    const { clock, policy, random } = this.options
    const pauseMs = this.#pausedUntilMs - clock.nowMs()
    if (pauseMs > 0) {
      const { code, reason } = this.#lastFault ?? { code: 'DestinationFault', reason: 'nothing was accepted' }
      return { delayMs: Math.ceil(pauseMs) + retryDelayMs(1, policy, random), code, reason }
    }
    const slowAfterMs = this.#slowAfterMs()
    if (this.#oldestOutMs() <= slowAfterMs) return null
    const delayMs = SLOW_AFTER_MS + retryDelayMs(1, { baseMs: 2 * SLOW_AFTER_MS, capMs: UNCHARGED_CAP_MS }, random)
    return { delayMs, code: 'DestinationSlow', reason: `a request has had no answer for more than ${slowAfterMs} ms` }
  }

  /** Milliseconds until the passing of time alone may change whether and what is sent. */
  nextChangeMs(): number {
    const pauseMs = this.#pausedUntilMs - this.options.clock.nowMs()
    const slowMs = this.#slowAfterMs() + 1 - this.#oldestOutMs()
    return Math.min(pauseMs > 0 ? pauseMs : Number.POSITIVE_INFINITY, slowMs > 0 ? slowMs : Number.POSITIVE_INFINITY)
  }

  /**
   * Sends one request, in more than one part if it is refused for something in it.
   *
   * @param load - makes up the messages; it runs when the request has its place, so that payloads in memory are bounded
   * @param mayStart - asked before each request that goes out
   */
  async send(load: () => Promise<readonly Message[]>, mayStart: () => boolean): Promise<Publication> {
    const { clock, telemetry, destination } = this.options
    const request = Symbol(destination)
    this.#busy += 1
    try {
      const messages = await load()
      const sentAtMs = clock.nowMs()
      this.#out.set(request, sentAtMs)
      const publication = await publishBisecting(this.options.publisher, messages, mayStart)
      telemetry.metric('PublishRequests', publication.requests, { destination })
      this.#heed(publication, sentAtMs)
      return publication
    } finally {
      this.#busy -= 1
      this.#out.delete(request)
      this.options.onRoom()
    }
  }

  #slowAfterMs(): number {
    return this.#faults > 0 ? SLOW_AFTER_FAULT_MS : SLOW_AFTER_MS
  }

  /** For how long the oldest request has been out; negative infinity if none is. */
  #oldestOutMs(): number {
    let oldest = Number.POSITIVE_INFINITY
    for (const sentAtMs of this.#out.values()) oldest = Math.min(oldest, sentAtMs)
    return this.options.clock.nowMs() - oldest
  }

  #heed(publication: Publication, sentAtMs: number): void {
    const { clock, telemetry, destination, policy, random } = this.options
    const faults = countFaults(this.#faults, publication)
    if (faults <= this.#faults) {
      this.#faults = faults
      if (faults === 0) this.#pausedUntilMs = Number.NEGATIVE_INFINITY
      return
    }
    const fault = publication.answers.find((answer): answer is DestinationFault => answer.kind === 'destination-fault')
    this.#lastFault = fault
    telemetry.metric('DestinationFaults', 1, { destination })
    // requests that were out together fail together: that is one fault, not eight
    if (sentAtMs < this.#lastFaultAtMs) return
    this.#faults = faults
    this.#lastFaultAtMs = clock.nowMs()
    const pauseMs = retryDelayMs(faults, { baseMs: policy.baseMs, capMs: Math.min(policy.capMs, UNCHARGED_CAP_MS) }, random)
    this.#pausedUntilMs = clock.nowMs() + pauseMs
    telemetry.log('destination-fault', {
      destination,
      consecutiveFaults: faults,
      pauseMs,
      ...(fault === undefined ? {} : { errorCode: fault.code, error: fault.reason, configuration: fault.configuration }),
    })
  }
}
