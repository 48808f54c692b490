import type { Publication } from './bisect.js'
import { coolDownMs, opensCircuit, type Circuit } from './circuit.js'
import type { Clock, Random } from './clock.js'
import type { Deadline } from './deadline.js'
import type { OutboxStore, Telemetry } from './ports.js'
import { countFaults, isNotTheEvents, type RetryPolicy } from './retry-policy.js'
import { Signal } from './signal.js'
import type { Sender } from './sender.js'

/** What is aside is brought back so often. */
const RELEASE_EVERY_MS = 500
/** So much of it as is sent in so long. */
const RELEASE_MS = 1000
/** Of a destination that is not configured any more: its events are routed anew, so many at a time. */
const UNKNOWN_DESTINATION_ROWS = 1000
/** The wait while there is nothing to do; a claim that shows a circuit ends it. */
const LONG_MS = 600_000

export interface CircuitsOptions {
  readonly store: Pick<OutboxStore, 'circuits' | 'circuitFault' | 'closeCircuit'>
  readonly senders: ReadonlyMap<string, Sender>
  readonly settings: { readonly policy: RetryPolicy; readonly releasePerSecond: number }
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  readonly hardDeadline: Deadline
  /** Events of a destination that this relay holds and has not sent. */
  readonly readyCount: (destination: string) => number
}

/**
 * The circuits of all destinations, as one relay pass knows them. The truth is in the database: every claim that brings events
 * brings it too, so a relay that has an event in hand knows whether it may send it.
 */
export class Circuits {
  readonly #known = new Map<string, Circuit>()
  readonly #changing = new Map<string, Promise<void>>()
  readonly #signal: Signal
  /** When the newest answer about all of them was asked for. */
  #newestMs = Number.NEGATIVE_INFINITY
  /** Destination -> when a change of its circuit was answered that this relay asked for. */
  readonly #changedAtMs = new Map<string, number>()
  /** When `run` looks again by itself; -infinity while it does not wait. */
  #wakesAtMs = Number.NEGATIVE_INFINITY
  /** Destination -> when events of it were last put aside, until an answer that was asked for later says what is aside. */
  readonly #putAsideAtMs = new Map<string, number>()
  #ended = false

  constructor(private readonly options: CircuitsOptions) {
    this.#signal = new Signal(options.clock)
  }

  /**
   * What the database says: all circuits that are not closed, or have events aside.
   *
   * @param askedAtMs - when the call was sent: an answer that is older than another one is no news
   */
  heed(circuits: readonly Circuit[], askedAtMs: number): void {
    if (askedAtMs < this.#newestMs) return
    this.#newestMs = askedAtMs
    const told = new Map(circuits.map((circuit) => [circuit.destination, circuit]))
    for (const destination of new Set([...this.#known.keys(), ...told.keys()])) {
      if (askedAtMs >= (this.#changedAtMs.get(destination) ?? askedAtMs)) this.#learn(destination, told.get(destination))
    }
    for (const [destination, atMs] of this.#putAsideAtMs) if (askedAtMs > atMs) this.#putAsideAtMs.delete(destination)
    this.#lookInTime()
  }

  /** Events of a destination are aside: this relay sees to it that they come back. */
  putAside(destination: string): void {
    this.#putAsideAtMs.set(destination, this.options.clock.nowMs())
    if (!this.#known.has(destination)) this.#signal.raise()
  }

  /** The circuit of a destination, if it is open or half-open. */
  open(destination: string): Circuit | undefined {
    const circuit = this.#known.get(destination)
    return circuit?.state === 'closed' ? undefined : circuit
  }

  /** Whether an event must be put aside in place of being sent. */
  holds(destination: string, eventId: string): boolean {
    const circuit = this.open(destination)
    return circuit !== undefined && circuit.probeEvent !== eventId
  }

  /** How many more events of a destination this relay should hold to have enough for so long; negative: it has too many. */
  room(destination: string, sender: Sender, ms: number): number {
    return sender.takesWithin(ms) - this.options.readyCount(destination)
  }

  /** Whether events that are aside come back soon. */
  get releasing(): boolean {
    const unseen = [...this.#putAsideAtMs.keys()].some((destination) => this.open(destination) === undefined)
    return unseen || [...this.#known.keys()].some((destination) => this.isReleasing(destination))
  }

  /** Whether events of a destination are aside that come back soon. */
  isReleasing(destination: string): boolean {
    const circuit = this.#known.get(destination)
    return circuit?.state === 'closed' && circuit.aside
  }

  /**
   * Opens a circuit, keeps it open or closes it, as the answer to a request demands.
   *
   * @param token - under which the events are leased: whoever lost its lease changes no circuit
   * @param eventIds - of the messages sent, in order
   */
  async heedAnswers(
    token: string,
    destination: string,
    eventIds: readonly string[],
    publication: Publication,
    sender: Sender,
  ): Promise<void> {
    await this.#changing.get(destination) // requests that fail together open it once
    const circuit = this.open(destination)
    if (circuit === undefined) {
      const sent = eventIds.find((_, index) => isNotTheEvents(publication.answers[index]))
      if (countFaults(0, publication) === 0 || sent === undefined || sender.lastFault === undefined) return
      // one event alone that is refused in an answer may be to blame itself: it backs off by itself
      const isWhole = publication.answers.some(({ kind }) => kind === 'destination-fault')
      if (eventIds.length === 1 && !isWhole && !sender.lastFault.configuration) return
      if (!opensCircuit(sender.lastFault, sender.consecutiveFaults)) return
      await this.#change(destination, () => this.#fault(destination, token, sent, 0, sender))
      return
    }
    const probe = eventIds.indexOf(circuit.probeEvent ?? '')
    const answer = publication.answers[probe]
    if (answer === undefined || answer.kind === 'unsent') return
    const event = eventIds[probe] ?? ''
    await this.#change(destination, () =>
      isNotTheEvents(answer) && answer.kind !== 'accepted'
        ? this.#fault(destination, token, event, circuit.failures, sender)
        : this.#close(destination, { token, event }),
    )
  }

  /** Reads the circuits, and brings back of what is aside as much as will be sent soon. */
  async refresh(): Promise<void> {
    const { store, senders, settings, hardDeadline, clock } = this.options
    const wanted: Record<string, number> = {}
    for (const { destination, state, aside } of this.#known.values()) {
      if (state !== 'closed' || !aside) continue
      const sender = senders.get(destination)
      const rows = sender === undefined ? UNKNOWN_DESTINATION_ROWS : this.room(destination, sender, RELEASE_MS)
      if (rows > 0) wanted[destination] = rows
    }
    const askedAtMs = clock.nowMs()
    this.heed(await store.circuits(wanted, settings.releasePerSecond, { deadline: hardDeadline }), askedAtMs)
    for (const { destination, state } of this.#known.values()) {
      // (while it cools down, a relay of a newer configuration may know it)
      if (!senders.has(destination) && state === 'half-open') await this.#close(destination, null)
    }
  }

  /** Keeps at it until `end`. Throws `SqlError` if the database cannot be used. */
  async run(): Promise<void> {
    for (;;) {
      const waitMs = this.#waitMs()
      this.#wakesAtMs = this.options.clock.nowMs() + waitMs
      await this.#signal.wait(waitMs)
      this.#wakesAtMs = Number.NEGATIVE_INFINITY
      if (this.#ended) return
      if (this.#known.size > 0 || this.#putAsideAtMs.size > 0) await this.refresh()
    }
  }

  end(): void {
    this.#ended = true
    this.#signal.raise()
  }

  #learn(destination: string, circuit: Circuit | undefined): void {
    if (circuit === undefined) this.#known.delete(destination)
    else this.#known.set(destination, circuit)
  }

  /** After a change: its answer tells of this one circuit alone, since it may not have seen what changed others meanwhile. */
  #heedChange(destination: string, circuits: readonly Circuit[]): void {
    this.#changedAtMs.set(destination, this.options.clock.nowMs())
    this.#learn(
      destination,
      circuits.find((circuit) => circuit.destination === destination),
    )
    this.#lookInTime()
  }

  #lookInTime(): void {
    if (this.options.clock.nowMs() + this.#waitMs() < this.#wakesAtMs) this.#signal.raise()
  }

  #waitMs(): number {
    const known = [...this.#known.values()]
    const unseen = [...this.#putAsideAtMs.keys()].filter((destination) => !this.#known.has(destination))
    return Math.min(
      LONG_MS,
      ...unseen.map(() => 0),
      ...known.map(({ state, retryInMs }) => (state === 'closed' ? RELEASE_EVERY_MS : retryInMs + RELEASE_EVERY_MS)),
    )
  }

  async #change(destination: string, change: () => Promise<void>): Promise<void> {
    const changing = change()
    this.#changing.set(
      destination,
      changing.catch(() => undefined).finally(() => this.#changing.delete(destination)),
    )
    await changing
  }

  async #fault(destination: string, token: string, event: string, failures: number, sender: Sender): Promise<void> {
    const { store, settings, random, telemetry, hardDeadline } = this.options
    const fault = sender.lastFault
    if (fault === undefined) return
    const coolDown = coolDownMs(failures, settings.policy, random)
    const answer = await store.circuitFault(
      { token, destination, event, failures, coolDownMs: coolDown, fault },
      { deadline: hardDeadline },
    )
    this.#heedChange(destination, answer.circuits)
    sender.resume()
    if (!answer.changed) return
    telemetry.log('circuit-opened', {
      destination,
      failures: failures + 1,
      coolDownMs: coolDown,
      errorCode: fault.code,
      error: fault.reason,
      configuration: fault.configuration,
      principal: principal(fault.reason),
      resource: sender.publisher.resource ?? null,
    })
  }

  async #close(destination: string, probe: { readonly token: string; readonly event: string } | null): Promise<void> {
    const { store, telemetry, hardDeadline } = this.options
    const answer = await store.closeCircuit(destination, probe, { deadline: hardDeadline })
    this.#heedChange(destination, answer.circuits)
    if (answer.changed) telemetry.log('circuit-closed', { destination })
  }
}

/** Who was refused, as AWS writes it: "User: arn:... is not authorized to perform: ... on resource: ...". */
function principal(reason: string): string | null {
  return /\b[Uu]ser: (\S+) is not authorized/.exec(reason)?.[1] ?? null
}
