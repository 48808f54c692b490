import type { ClaimedEvent } from './event.js'
import type { Outcome } from './outcome.js'
import type { Message } from './ports.js'
import type { OnFailure } from './route.js'
import type { SettledEvent } from './settlement.js'

/** What becomes of an event before it is sent. */
export type Prepared =
  | {
      readonly kind: 'ready'
      readonly destination: string
      readonly onFailure: OnFailure
      /** null: its payload did not come with the claim; it is fetched when its turn comes, and sent alone. */
      readonly message: Message | null
    }
  /** It will not be sent: no route, or it can never be sent unchanged. */
  | { readonly kind: 'decided'; readonly outcome: Outcome }

export interface ReadyEvent {
  readonly event: ClaimedEvent
  readonly destination: string
  readonly onFailure: OnFailure
  /** null: the payload is still to be fetched. */
  readonly message: Message | null
}

/**
 * The events that one lease token holds, from claim to settlement. Bookkeeping only: no clock, no I/O.
 *
 * Order per key rests on one rule: of the events of an ordering key, only the first that is not confirmed is ever ready
 * or sent. The others wait in the key's chain, whatever their destinations are. When the first is not published, the
 * chain is left: its events get no outcome, stay ready in the database, and the next claim finds them behind the first.
 */
export class Batch {
  /** Shards that the token leases, as far as answers have shown. */
  readonly shards = new Set<number>()

  readonly #inHand = new Map<string, ClaimedEvent>()
  readonly #ready = new Map<string, ReadyEvent[]>()
  readonly #sent = new Set<string>()
  readonly #decided = new Map<string, SettledEvent>()
  /** Ordering key -> what waits behind its event that is ready or sent. */
  readonly #chains = new Map<string, ClaimedEvent[]>()
  /** Ordering key -> id of its event that was not published and is not settled yet; null: one that was left. */
  readonly #stopped = new Map<string, string | null>()
  /** Event id -> event that stays in hand without an outcome until what stopped its key is settled. */
  readonly #left = new Map<string, ClaimedEvent>()

  constructor(
    readonly token: string,
    private readonly prepare: (event: ClaimedEvent) => Prepared,
  ) {}

  add(events: readonly ClaimedEvent[]): void {
    for (const event of events) {
      if (this.#inHand.has(event.id)) continue
      this.#inHand.set(event.id, event)
      this.shards.add(event.shard)
      const key = event.orderingKey
      const chain = key === null ? undefined : this.#chains.get(key)
      if (chain !== undefined) {
        chain.push(event)
      } else if (key !== null && this.#stopped.has(key)) {
        this.#left.set(event.id, event)
      } else {
        if (key !== null) this.#chains.set(key, [])
        this.#makeReady(event)
      }
    }
  }

  /** Ready events of a destination, in the order in which they became ready. */
  ready(destination: string): readonly ReadyEvent[] {
    return this.#ready.get(destination) ?? []
  }

  destinationsReady(): string[] {
    return [...this.#ready.keys()]
  }

  /** Takes ready events for one request. */
  take(destination: string, events: readonly ReadyEvent[]): void {
    const taken = new Set(events)
    const rest = this.ready(destination).filter((event) => !taken.has(event))
    if (rest.length === 0) this.#ready.delete(destination)
    else this.#ready.set(destination, rest)
    for (const { event } of events) this.#sent.add(event.id)
  }

  /** Records an outcome. A published event makes the next of its key ready; any other leaves the rest of its key. */
  decide(event: ClaimedEvent, outcome: Outcome): void {
    this.#sent.delete(event.id)
    this.#decided.set(event.id, { id: event.id, attempts: event.attempts, replays: event.replays, outcome })
    // what is decided is not sent again: its payload need not be kept until it is settled
    this.#inHand.set(event.id, { ...event, payload: null })
    if (outcome.kind === 'published') this.#nextOfKey(event)
    else this.#stopKey(event, event.id)
  }

  /** Gives up an event without an outcome: it stays ready in the database. So does the rest of its key. */
  leave(event: ClaimedEvent): void {
    this.#sent.delete(event.id)
    this.#left.set(event.id, event)
    this.#stopKey(event, null)
  }

  /** Gives up everything that is ready and not sent. */
  leaveReady(): void {
    const ready = [...this.#ready.values()].flat()
    this.#ready.clear()
    for (const { event } of ready) this.leave(event)
  }

  /** It was sent and may have arrived, but its destination failed: it is ready again, behind the others. */
  again(entry: ReadyEvent): void {
    this.#sent.delete(entry.event.id)
    this.#ready.set(entry.destination, [...this.ready(entry.destination), entry])
  }

  /** Decides ready events of a destination without sending them. */
  decideReady(destination: string, events: readonly ReadyEvent[], outcome: Outcome): void {
    this.take(destination, events)
    for (const { event } of events) this.decide(event, outcome)
  }

  get sentCount(): number {
    return this.#sent.size
  }

  get decidedCount(): number {
    return this.#decided.size
  }

  get inHandCount(): number {
    return this.#inHand.size
  }

  /** Of payloads that came with a claim and are not decided. */
  get payloadBytesInHand(): number {
    let bytes = 0
    for (const { payload, payloadBytes } of this.#inHand.values()) if (payload !== null) bytes += payloadBytes
    return bytes
  }

  get readyCount(): number {
    let count = 0
    for (const events of this.#ready.values()) count += events.length
    return count
  }

  /** Every id that a further claim under this token must not return. */
  idsInHand(): string[] {
    return [...this.#inHand.keys()]
  }

  /** Outcomes that are not settled yet. */
  outcomes(): SettledEvent[] {
    return [...this.#decided.values()]
  }

  /** Shards that hold nothing which is still ready, sent or chained behind such an event. */
  finishedShards(): number[] {
    const open = new Set<number>()
    for (const [id, event] of this.#inHand) {
      if (!this.#decided.has(id) && !this.#left.has(id)) open.add(event.shard)
    }
    return [...this.shards].filter((shard) => !open.has(shard))
  }

  event(id: string): ClaimedEvent | undefined {
    return this.#inHand.get(id)
  }

  /** These outcomes are in the database; what was left behind them is out of hand as well. */
  settled(outcomes: readonly SettledEvent[]): void {
    const settledIds = new Set(outcomes.map(({ id }) => id))
    for (const id of settledIds) {
      this.#decided.delete(id)
      this.#inHand.delete(id)
    }
    for (const [key, id] of this.#stopped) {
      if (id === null || settledIds.has(id)) this.#stopped.delete(key)
    }
    for (const [id, { orderingKey }] of this.#left) {
      if (orderingKey !== null && this.#stopped.has(orderingKey)) continue
      this.#left.delete(id)
      this.#inHand.delete(id)
    }
  }

  #makeReady(event: ClaimedEvent): void {
    const prepared = this.prepare(event)
    if (prepared.kind === 'decided') {
      this.decide(event, prepared.outcome)
      return
    }
    const { destination, onFailure, message } = prepared
    const entry = { event, destination, onFailure, message }
    const queue = this.#ready.get(destination)
    if (queue === undefined) this.#ready.set(destination, [entry])
    else queue.push(entry)
  }

  #nextOfKey(event: ClaimedEvent): void {
    if (event.orderingKey === null) return
    const next = this.#chains.get(event.orderingKey)?.shift()
    if (next === undefined) this.#chains.delete(event.orderingKey)
    else this.#makeReady(next)
  }

  #stopKey(event: ClaimedEvent, id: string | null): void {
    if (event.orderingKey === null) return
    this.#stopped.set(event.orderingKey, id)
    for (const follower of this.#chains.get(event.orderingKey) ?? []) this.#left.set(follower.id, follower)
    this.#chains.delete(event.orderingKey)
  }
}
