import { setTimeout as pause } from 'node:timers/promises'
import { connect, type OutboxDatabase, type Session } from '../../support/outbox-sql.js'

/** Whoever takes part has a connection that may be cut at any moment; it is replaced then. */
export interface Actor {
  session: Session
}

/** One sending of an event by a relay. `zombie`: after its lease had run out, by a relay that was paused. */
export interface Sending {
  readonly at: number
  readonly id: string
  readonly zombie: boolean
}

/** What all parts of the soak share. */
export class SoakRun {
  /** While true, connections are cut, relays die, pause and fail; afterwards all work on until the queue is empty. */
  chaos = true
  stopped = false
  readonly sendings: Sending[] = []
  /** Events whose key may go on although they were not sent: when that was decided. */
  readonly passed = new Map<string, number>()
  readonly committed = new Set<string>()
  readonly scheduled = new Set<string>()
  /** How often each kind of event happened, for people and for "did the soak do anything". */
  readonly counts: Record<string, number> = {}
  /** `who SQLSTATE` -> times. */
  readonly errors: Record<string, number> = {}
  #clock = 0
  readonly #actors = new Set<Actor>()

  constructor(
    readonly database: OutboxDatabase,
    /** In [0, 1). */
    readonly random: () => number,
    readonly events: number,
    readonly chaosSeconds: number,
  ) {}

  /** Uniform in 0 .. n-1. */
  below(n: number): number {
    return Math.floor(this.random() * n)
  }

  /** True with this probability, and never once the chaos is over. */
  strikes(probability: number): boolean {
    return this.chaos && this.random() < probability
  }

  count(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by
  }

  fault(who: string, error: unknown): void {
    const { code, message } = error as { code?: string; message?: string }
    const key = `${who} ${code ?? message ?? String(error)}`
    this.errors[key] = (this.errors[key] ?? 0) + 1
  }

  tick(): number {
    return ++this.#clock
  }

  pass(id: string): void {
    if (!this.passed.has(id)) this.passed.set(id, this.tick())
  }

  async actor(): Promise<Actor> {
    const actor = { session: await connect(this.database.url()) }
    this.#actors.add(actor)
    return actor
  }

  /** A call that fails or, with probability `loss`, whose connection is cut while it runs, answers undefined. */
  async call<Value>(
    actor: Actor,
    what: string,
    call: (session: Session) => Promise<Value>,
    loss = 0,
  ): Promise<Value | undefined> {
    if (this.strikes(loss)) {
      this.count('disconnects')
      const running = call(actor.session).catch(() => undefined)
      await pause(this.random() * 5)
      cut(actor.session)
      await running
      actor.session = await connect(this.database.url())
      return undefined
    }
    try {
      return await call(actor.session)
    } catch (error) {
      this.fault(what, error)
      cut(actor.session)
      actor.session = await connect(this.database.url())
      return undefined
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#actors].map(({ session }) => session.client.end()))
  }
}

function cut(session: Session): void {
  // no goodbye to the server: this is what a network does
  const { connection } = session.client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}
