import { publishBisecting, type DestinationFault, type Publication } from './bisect.js'
import { opensCircuit, type Fault } from './circuit.js'
import type { Clock, Random } from './clock.js'
import type { Message, Publisher, Telemetry } from './ports.js'
import { retryDelayMs } from './retry-delays.js'
import { countFaults, type RetryPolicy } from './retry-policy.js'

/** A request that is out for longer makes its destination count as slow: nothing more waits for it in a relay's hands. */
export const SLOW_AFTER_MS = 1000
/** So much sooner while the last request failed: what tries a destination that hangs is not worth waiting for. */
export const SLOW_AFTER_FAULT_MS = 200
/** Its events wait in hand for so long at most, with their shards leased: whoever is down for longer has an open circuit. */
const LONGEST_PAUSE_MS = 1000
/** What is sent within this time is no reason to claim and settle more often. */
const SOON_MS = 500
/** How much the last request counts in the averages of what a request takes, and for how long. */
const NEWEST_SHARE = 0.3

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
 * One destination as all batches of a relay pass share it: how many requests are out, how much it takes, and whether it makes
 * sense to send.
 *
 * After a request that failed whole it pauses, the longer the more such failures came in a row; then one request alone tries
 * it, and the first acceptance ends that. After the third its circuit opens.
 */
export class Sender {
  /** Requests that are being made up or are out. */
  #busy = 0
  /** Requests that are out -> since when, with how many events. */
  readonly #out = new Map<symbol, { readonly sentAtMs: number; readonly events: number }>()
  /** What a request took of late, on average; null: nothing was accepted yet. */
  #usual: { readonly events: number; readonly ms: number } | null = null
  #faults = 0
  #lastFault: Fault | undefined
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

  /** Why the last request of which nothing was accepted failed. */
  get lastFault(): Fault | undefined {
    return this.#lastFault
  }

  /** Whether another request may go out now. */
  hasRoom(): boolean {
    if (this.options.clock.nowMs() < this.#pausedUntilMs) return false
    return this.#busy < (this.#faults > 0 ? 1 : this.options.requestsInFlight)
  }

  /**
   * How many events, beyond those that are out, it will have taken after so many milliseconds, one round of requests at least.
   * 0 while it is slow; until anything was accepted, as many as one round of full requests takes.
   */
  takesWithin(ms: number): number {
    if (this.isSlow()) return 0
    const { requestsInFlight, publisher } = this.options
    const usual = this.#usual ?? { events: publisher.limits.maxEntries, ms }
    let out = 0
    for (const { events } of this.#out.values()) out += events
    return Math.max(0, Math.floor(Math.max(1, ms / Math.max(1, usual.ms)) * requestsInFlight * usual.events) - out)
  }

  /** A request has had no answer for so long that nothing should wait behind it. */
  isSlow(): boolean {
    return this.#oldestOutMs() > this.#slowAfterMs()
  }

  /** Whether so many events are sent within a moment: then they keep nobody waiting. */
  takesSoon(events: number): boolean {
    if (this.hasRoom()) return true
    return this.#usual === null ? this.#oldestOutMs() < SOON_MS : events < this.takesWithin(SOON_MS)
  }

  /** Whether anything was accepted yet, so that it is known how much it takes. */
  get isMeasured(): boolean {
    return this.#usual !== null
  }

  /** Ends a pause: its circuit is known, and says what may be sent. */
  resume(): void {
    this.#pausedUntilMs = Number.NEGATIVE_INFINITY
    this.options.onRoom()
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
      this.#out.set(request, { sentAtMs, events: messages.length })
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
    for (const { sentAtMs } of this.#out.values()) oldest = Math.min(oldest, sentAtMs)
    return this.options.clock.nowMs() - oldest
  }

  #heed(publication: Publication, sentAtMs: number): void {
    const { clock, telemetry, destination, policy, random } = this.options
    this.#measure(publication, clock.nowMs() - sentAtMs)
    const faults = countFaults(this.#faults, publication)
    if (faults <= this.#faults) {
      this.#faults = faults
      if (faults === 0) this.#pausedUntilMs = Number.NEGATIVE_INFINITY
      return
    }
    this.#lastFault = faultOf(publication)
    telemetry.metric('DestinationFaults', 1, { destination })
    // requests that were out together fail together: that is one fault, not eight
    if (sentAtMs < this.#lastFaultAtMs) return
    this.#faults = faults
    this.#lastFaultAtMs = clock.nowMs()
    // (while its circuit opens nothing more goes out: `resume` ends that)
    const pauseMs = opensCircuit(this.#lastFault, faults)
      ? LONGEST_PAUSE_MS
      : retryDelayMs(faults, { baseMs: policy.baseMs, capMs: Math.min(policy.capMs, LONGEST_PAUSE_MS) }, random)
    this.#pausedUntilMs = clock.nowMs() + pauseMs
    const { code, reason, configuration } = this.#lastFault
    telemetry.log('destination-fault', {
      destination,
      consecutiveFaults: faults,
      pauseMs,
      errorCode: code,
      error: reason,
      configuration,
    })
  }

  #measure(publication: Publication, ms: number): void {
    const events = publication.answers.filter(({ kind }) => kind === 'accepted').length
    if (events === 0) return
    const share = this.#usual === null ? 1 : NEWEST_SHARE
    const { events: oldEvents, ms: oldMs } = this.#usual ?? { events: 0, ms: 0 }
    this.#usual = { events: oldEvents + share * (events - oldEvents), ms: oldMs + share * (ms - oldMs) }
  }
}

function faultOf({ answers }: Publication): Fault {
  const whole = answers.find((answer): answer is DestinationFault => answer.kind === 'destination-fault')
  if (whole !== undefined) {
    const { code, reason, configuration, timedOut } = whole
    return { code, reason, configuration, timedOut: timedOut === true }
  }
  const refused = answers.find((answer) => answer.kind === 'refused' && answer.fault !== 'event')
  const { code, reason } =
    refused?.kind === 'refused' ? refused : { code: 'UnknownEntry', reason: 'the answer names none of the entries' }
  const configuration = answers.every((answer) => answer.kind === 'refused' && answer.configuration === true)
  return { code, reason, configuration, timedOut: false }
}
