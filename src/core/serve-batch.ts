import { Batch, type ReadyEvent } from './batch.js'
import { pack } from './batching.js'
import type { MessageAnswer } from './bisect.js'
import { claimEvents, releaseUnseen } from './claim-events.js'
import { earlier } from './deadline.js'
import { SqlError } from './errors.js'
import { Lease, LEASE_MARGIN_MS } from './lease.js'
import { isOutcome, loadMessage } from './load-message.js'
import type { PassContext } from './pass-context.js'
import type { ClaimAnswer, Message } from './ports.js'
import { judge } from './judge.js'
import { acceptedAny, type Circumstances } from './retry-policy.js'
import type { Sender } from './sender.js'
import { reportSettled } from './settled-report.js'
import { readSettleAnswer } from './settlement.js'
import { Signal } from './signal.js'
import { startSuspect } from './suspect.js'

/** A batch with nothing left to send settles what it has after so long, and gives finished shards back, whatever is still out. */
const PART_SETTLE_IDLE_MS = 200
/** A batch that is still sending settles at least so often. */
const PART_SETTLE_BUSY_MS = 2000
/** A batch that holds so many claims' worth, in rows or in bytes, claims no more: so it never has more than three. */
const CLAIMS_IN_HAND = 2
/** While suspects wait until it ends, a batch gives back after so long what it has not sent. */
const GIVES_WAY_AFTER_MS = 2000
/** Of a destination that takes less than there is, a batch keeps what it takes in so long, and puts the rest aside. */
const IN_HAND_MS = 1000

/** `nothing` was due; there was work (`served`); there was one event, served alone (`suspect`). */
export type Served = 'nothing' | 'served' | 'suspect'

export interface ServeEvents {
  /** The relay has nothing else in hand. */
  readonly takesSuspects: boolean
  /** Called with the number of events as soon as the first claim has answered with any that need not be served alone. */
  readonly claimed: (events: number) => void
  /** Called, maybe more than once, when nothing has been ready for a while: the batch only waits for answers of destinations. */
  readonly waits: () => void
}

/**
 * Serves one lease token: claims, publishes, settles and gives its shards back. Requests go on side by side; calls to the
 * database go one after another.
 *
 * While requests to a slow destination are out, what is finished is settled, the shards that are finished are given back,
 * and what arrives meanwhile in the others is claimed under the same token.
 */
export class BatchServer {
  readonly #batch: Batch
  readonly #lease: Lease
  readonly #signal: Signal
  readonly #requests = new Set<Promise<void>>()
  #lost = false
  #givenBack = 0
  #nothingReadySinceMs: number | null = null
  #lastSettleMs: number
  readonly #begunAtMs: number
  #claimMoreWaitMs = PART_SETTLE_IDLE_MS
  #claimMoreAtMs = 0
  /** The last claim ended at its bytes, not at its rows: there is more, and one settlement will do for all of it. */
  #cutShort = false
  /** Events were put aside: what is behind them is claimed as soon as that is settled. */
  #putAside = false
  /** It has one event, which is served alone. */
  #suspect = false
  #failure: unknown = null

  constructor(private readonly context: PassContext) {
    const { clock, random, settings, prepare } = context
    this.#batch = new Batch(random.uuid(), prepare)
    this.#lease = new Lease(clock, settings.leaseSeconds)
    this.#signal = new Signal(clock)
    this.#lastSettleMs = this.#begunAtMs = clock.nowMs()
  }

  /** There may be room for a request again. */
  wake(): void {
    this.#signal.raise()
  }

  /** Events of a destination that are in hand and not sent. */
  readyCount(destination: string): number {
    return this.#batch.ready(destination).length
  }

  async serve({ claimed, waits, takesSuspects }: ServeEvents): Promise<Served> {
    const answer = await this.#firstClaim(takesSuspects)
    if (answer === null) return 'served'
    if (answer.events.length === 0 && !answer.repeated) return 'nothing'
    const suspect = answer.events.find(({ reclaimedFrom }) => reclaimedFrom !== null)
    this.#suspect = suspect !== undefined
    if (answer.events.length > 0 && suspect === undefined) claimed(answer.events.length)
    try {
      if (suspect === undefined || (await startSuspect(this.context, this.#batch.token, this.#lease, suspect))) this.#add(answer)
      // its lease is short, and the calls may have been slow
      if (this.#suspect) await this.#keepLease()
      await this.#work(waits)
    } finally {
      this.#batch.leaveReady()
      await Promise.all(this.#requests)
      await this.#settle(null)
    }
    if (this.#failure !== null) throw this.#failure as Error
    return this.#suspect ? 'suspect' : 'served'
  }

  async #work(waits: () => void): Promise<void> {
    for (;;) {
      if (!this.#mayStart() || this.#givesWay()) this.#batch.leaveReady()
      this.#dispatch()
      if (this.#putAside) {
        await this.#passOver(waits)
        continue
      }
      if (this.#mayFillUp()) {
        await this.#keepLease()
        await this.#claimMore()
        continue
      }
      if (this.#batch.readyCount === 0 && this.#batch.sentCount === 0) return
      await this.#signal.wait(this.#nextTimerMs())
      if (this.#idleInMs() <= 0) waits()
      await this.#keepLease()
      if (this.#partIsDue()) await this.#settle(this.#batch.finishedShards())
      if (this.#moreIsDue()) await this.#claimMore()
    }
  }

  // ---- claim -----------------------------------------------------------------------------------------------------

  /** null: it got no usable answer, or one that was too large; what it may have leased is given back. */
  async #firstClaim(takesSuspects: boolean): Promise<ClaimAnswer | null> {
    this.#lease.begin()
    try {
      return await claimEvents(this.context, this.#batch.token, this.#lease, null, takesSuspects)
    } catch (error) {
      await releaseUnseen(this.context, this.#batch.token, error)
      if (error instanceof SqlError && error.kind === 'oversize') return null
      throw error
    }
  }

  /** Takes what has become due in the shards of this batch meanwhile. */
  async #claimMore(): Promise<void> {
    const { settings, clock } = this.context
    this.#cutShort = false
    try {
      const answer = await claimEvents(this.context, this.#batch.token, this.#lease, this.#batch.idsInHand(), false)
      this.#claimMoreWaitMs =
        answer.events.length > 0 ? PART_SETTLE_IDLE_MS / 4 : Math.min(2 * this.#claimMoreWaitMs, settings.idleWaitMs)
      this.#add(answer)
    } catch (error) {
      // too large: it leased nothing that this batch does not have
      if (!(error instanceof SqlError && error.kind === 'oversize')) throw error
    }
    this.#claimMoreAtMs = clock.nowMs() + this.#claimMoreWaitMs
  }

  /** Settles what was put aside, so that others may claim what is behind it, and does so itself in the shards that it keeps. */
  async #passOver(waits: () => void): Promise<void> {
    this.#putAside = false
    await this.#keepLease()
    await this.#settle(this.#batch.finishedShards())
    waits()
    if (this.#batch.shards.size > 0 && this.#hasRoom(1) && this.#mayClaimMore()) await this.#claimMore()
  }

  #add(answer: ClaimAnswer): void {
    const { claimRows, claimBytes } = this.context.settings
    const bytes = answer.events.reduce((sum, { payload, payloadBytes }) => (payload === null ? sum : sum + payloadBytes), 0)
    this.#cutShort = !this.#suspect && answer.events.length < claimRows && bytes > claimBytes / 2
    this.#batch.add(answer.events)
    if (this.#maySend()) this.#nothingReadySinceMs = null
  }

  // ---- publish ---------------------------------------------------------------------------------------------------

  #mayStart(): boolean {
    const { deadline, settings, stop } = this.context
    if (this.#lost || stop.requested || this.#failure !== null || deadline.remainingMs() <= 0) return false
    return this.#lease.remainingMs() > settings.requestTimeoutMs + LEASE_MARGIN_MS
  }

  /** Not beside a suspect, nor while suspects wait until this relay has nothing in hand. */
  #mayClaimMore(): boolean {
    return !this.#suspect && !this.context.suspects.wait && this.#mayStart()
  }

  #givesWay(): boolean {
    const { clock, suspects } = this.context
    return suspects.wait && !this.#suspect && clock.nowMs() - this.#begunAtMs > GIVES_WAY_AFTER_MS
  }

  #dispatch(): void {
    const { senders, clock } = this.context
    for (const destination of this.#batch.destinationsReady()) {
      const sender = senders.get(destination)
      if (sender === undefined) throw new Error(`no sender for destination ${destination}`)
      this.#hold(destination, sender)
      while (sender.hasRoom() && this.#batch.ready(destination).length > 0) this.#startRequest(destination, sender)
    }
    if (this.#maySend()) this.#nothingReadySinceMs = null
    else this.#nothingReadySinceMs ??= clock.nowMs()
  }

  /** Whether anything in hand is sent soon: what only waits for room at its destination must not keep others waiting. */
  #maySend(): boolean {
    const { senders } = this.context
    return this.#batch
      .destinationsReady()
      .some((name) => senders.size === 1 || senders.get(name)?.takesSoon(this.readyCount(name)))
  }

  /** Puts aside what its destination does not take: all but the probe if its circuit is open, else what it will not take soon. */
  #hold(destination: string, sender: Sender): void {
    const { circuits, senders } = this.context
    const ready = this.#batch.ready(destination)
    let held: readonly ReadyEvent[] = []
    if (circuits.open(destination) !== undefined) {
      held = ready.filter(({ event }) => circuits.holds(destination, event.id))
    } else if (senders.size > 1 && (sender.isSlow() || sender.isMeasured)) {
      // what is aside came first: what is new leaves it half of the room. Less than twice too many is not worth the writes
      const kept = circuits.isReleasing(destination) ? Math.ceil(sender.takesWithin(IN_HAND_MS) / 2) : 0
      const isMuch = kept > 0 || circuits.room(destination, sender, 2 * IN_HAND_MS) < 0
      const tooMany = isMuch ? kept - circuits.room(destination, sender, IN_HAND_MS) : 0
      if (tooMany > 0) held = ready.filter(({ event }) => !event.released).slice(-tooMany)
    }
    if (held.length === 0) return
    this.#batch.decideReady(destination, held, { kind: 'hold', destination, errorCode: null, error: null })
    this.#putAside = true
  }

  #startRequest(destination: string, sender: Sender): void {
    const ready = this.#batch.ready(destination)
    const entries = ready[0]?.message === null ? ready.slice(0, 1) : pack(ready.filter(hasMessage), sender.publisher.limits)
    this.#batch.take(destination, entries)
    const request = this.#request(sender, entries)
      .catch((error: unknown) => {
        // not an answer of a destination: a fault of this program, or of the database while a payload was fetched
        for (const { event } of entries) this.#batch.leave(event)
        this.#failure ??= error
      })
      .finally(() => {
        this.#requests.delete(request)
        this.#signal.raise()
      })
    this.#requests.add(request)
  }

  async #request(sender: Sender, entries: readonly ReadyEvent[]): Promise<void> {
    const { telemetry } = this.context
    const sent: ReadyEvent[] = []
    const load = async (): Promise<readonly Message[]> => {
      const messages: Message[] = []
      for (const entry of entries) {
        const loaded = await loadMessage(this.context, this.#lease, entry)
        if (isOutcome(loaded)) {
          this.#batch.decide(entry.event, loaded)
        } else {
          sent.push(entry)
          messages.push(loaded)
        }
      }
      return messages
    }
    const publication = await sender.send(load, () => this.#mayStart())
    const unknown = publication.answers.filter(({ kind }) => kind === 'missing').length
    if (unknown > 0) {
      const destination = entries[0]?.destination ?? ''
      telemetry.metric('UnknownEntries', unknown, { destination })
      telemetry.log('unknown-entry', { destination, entries: unknown })
    }
    const answered = sent.map((entry, index) => ({ entry, answer: publication.answers[index] ?? { kind: 'missing' as const } }))
    const circumstances = { neighbourAccepted: acceptedAny(publication), consecutiveFaults: sender.consecutiveFaults }
    const [first] = entries
    // what is known is kept, even if the circuit cannot be reached
    for (const { entry, answer } of answered) if (answer.kind === 'accepted') this.#heed(entry, answer, circumstances)
    if (first !== undefined) {
      const ids = sent.map(({ event }) => event.id)
      await this.context.circuits.heedAnswers(this.#batch.token, first.destination, ids, publication, sender)
    }
    for (const { entry, answer } of answered) if (answer.kind !== 'accepted') this.#heed(entry, answer, circumstances)
  }

  #heed(entry: ReadyEvent, answer: MessageAnswer, circumstances: Circumstances): void {
    const { settings, random, circuits } = this.context
    const verdict = judge(answer, entry, circumstances, circuits.open(entry.destination), settings.policy, random)
    if (verdict === 'leave') this.#batch.leave(entry.event)
    else if (verdict === 'again') this.#batch.again(entry)
    else this.#batch.decide(entry.event, verdict)
  }

  // ---- lease and settlement --------------------------------------------------------------------------------------

  async #keepLease(): Promise<void> {
    const { store, hardDeadline } = this.context
    // over already, after a freeze or a stall: the settlement tells who has the shards now
    if (this.#lost || this.#lease.remainingMs() <= 0 || !this.#lease.renewalIsDue()) return
    const shards = [...this.#batch.shards]
    this.#lease.renewalSent()
    const leased = await store.renew(this.#batch.token, shards, this.#lease.seconds, {
      deadline: earlier(this.#lease, hardDeadline),
    })
    if (leased >= shards.length) {
      this.#lease.renewed()
      return
    }
    this.#leaseLost(shards.length - leased, 'renew')
  }

  #leaseLost(shards: number, noticedBy: 'renew' | 'settle'): void {
    const { telemetry, totals } = this.context
    if (this.#lost) return
    this.#lost = true
    totals.leaseLost += shards
    telemetry.metric('LeaseLost', shards)
    telemetry.log('lease-lost', { shards, noticedBy })
  }

  #partIsDue(): boolean {
    const now = this.context.clock.nowMs()
    if (this.#batch.sentCount === 0 && this.#batch.readyCount === 0) return false
    if (this.#idleInMs() <= 0) {
      return this.#batch.decidedCount > 0 || this.#batch.finishedShards().length > 0
    }
    return this.#batch.decidedCount > 0 && now - this.#lastSettleMs >= PART_SETTLE_BUSY_MS
  }

  /** Whether big events are claimed on, answer by answer, before anything of the batch is settled: up to the rows of one claim. */
  #mayFillUp(): boolean {
    const { readyCount, shards } = this.#batch
    return this.#cutShort && readyCount === 0 && shards.size > 0 && this.#hasRoom(1) && this.#mayClaimMore()
  }

  /** @param claims - rows in hand that are too many, in claims' worth */
  #hasRoom(claims: number): boolean {
    const { claimRows, claimBytes } = this.context.settings
    const { inHandCount, payloadBytesInHand } = this.#batch
    return inHandCount < claims * claimRows && payloadBytesInHand < CLAIMS_IN_HAND * claimBytes
  }

  /** Only what is settled may be claimed around: so it is never due while an outcome is unsettled. */
  #moreIsDue(): boolean {
    return this.#batch.decidedCount === 0 && this.#moreDueInMs() <= 0
  }

  #moreDueInMs(): number {
    const { sentCount, shards } = this.#batch
    const hasRoom = sentCount > 0 && shards.size > 0 && this.#hasRoom(CLAIMS_IN_HAND)
    if (!hasRoom || !this.#mayClaimMore()) return Number.POSITIVE_INFINITY
    return Math.max(this.#idleInMs(), this.#claimMoreAtMs - this.context.clock.nowMs())
  }

  /** Milliseconds until nothing has been ready for so long that the batch counts as idle. */
  #idleInMs(): number {
    if (this.#nothingReadySinceMs === null) return Number.POSITIVE_INFINITY
    return this.#nothingReadySinceMs + PART_SETTLE_IDLE_MS - this.context.clock.nowMs()
  }

  #nextTimerMs(): number {
    const { clock, senders, deadline } = this.context
    const now = clock.nowMs()
    const timers = [Math.max(deadline.remainingMs(), 100)]
    if (!this.#lost && this.#lease.remainingMs() > 0) timers.push(this.#lease.renewalDueInMs())
    for (const destination of this.#batch.destinationsReady()) {
      timers.push(senders.get(destination)?.nextChangeMs() ?? Number.POSITIVE_INFINITY)
    }
    if (this.#idleInMs() > 0) timers.push(this.#idleInMs())
    if (this.#batch.decidedCount === 0) timers.push(this.#moreDueInMs())
    else if (this.#nothingReadySinceMs === null) timers.push(this.#lastSettleMs + PART_SETTLE_BUSY_MS - now)
    else timers.push(this.#idleInMs())
    return Math.max(1, Math.min(...timers))
  }

  /** @param done - shards to give back; null: all, for good */
  async #settle(done: readonly number[] | null): Promise<void> {
    const { store, telemetry, hardDeadline, clock, circuits } = this.context
    const outcomes = this.#batch.outcomes()
    const own = this.#batch.shards.size
    try {
      const answer = await store.settle({ token: this.#batch.token, events: outcomes, done }, { deadline: hardDeadline })
      for (const { outcome } of outcomes) if (outcome.kind === 'hold') circuits.putAside(outcome.destination)
      const verdict = readSettleAnswer(outcomes, answer, own, this.#givenBack)
      reportSettled(outcomes, answer, verdict, (id) => this.#batch.event(id), this.context)
      if (verdict.kind === 'lease-lost') this.#leaseLost(verdict.shards, 'settle')
    } catch (error) {
      telemetry.log('settle-unresolved', { outcomes: outcomes.length, error: error instanceof Error ? error.message : 'unknown' })
      throw error
    }
    this.#batch.settled(outcomes)
    for (const shard of done ?? this.#batch.shards) this.#batch.shards.delete(shard)
    this.#givenBack += own - this.#batch.shards.size
    this.#lastSettleMs = clock.nowMs()
  }
}

function hasMessage(entry: ReadyEvent): entry is ReadyEvent & { readonly message: Message } {
  return entry.message !== null
}
