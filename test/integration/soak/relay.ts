import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  claim,
  fail,
  hold,
  published,
  renew,
  retry,
  settle,
  start,
  type Change,
  type ClaimedRow,
  type Published,
  type Settled,
} from '../../support/outbox-sql.js'
import type { Actor, SoakRun } from './soak-run.js'

/** Short, so that leases do run out. */
const leaseSeconds = 1
const leaseMs = leaseSeconds * 1000
/** Left when a lease is renewed. */
const marginMs = 30

/** Claims, sends and settles until the run is stopped; in the chaos it dies, pauses, fails and loses answers. */
export async function relay(run: SoakRun): Promise<void> {
  const actor = await run.actor()
  while (!run.stopped) {
    const batch = await claimBatch(run, actor)
    if (batch === undefined) continue
    if (batch.rows.length === 0) {
      await pause(run.chaos ? 8 : 3)
      continue
    }
    if (run.strikes(0.01)) continue // dies here
    await new Batch(run, actor, batch).work()
  }
}

interface Claimed {
  readonly token: string
  readonly rows: readonly ClaimedRow[]
  /** When the claim was sent: the lease counts from there. */
  readonly sentAt: number
}

async function claimBatch(run: SoakRun, actor: Actor): Promise<Claimed | undefined> {
  const options = {
    token: randomUUID(),
    rows: 20 + run.below(280),
    keyRows: [1, 5, 500][run.below(3)]!,
    shards: 1 + run.below(6),
    leaseSeconds,
    suspectLeaseSeconds: leaseSeconds,
    bytes: run.random() < 0.1 ? 5000 : 700_000,
  }
  let sentAt = Date.now()
  let answer = await run.call(actor, 'claim', (session) => claim(session, options), 0.015)
  if (answer === undefined) {
    if (run.random() < 0.4) return undefined // gives up: the lease runs out
    run.count('repeats')
    sentAt = Date.now()
    answer = await run.call(actor, 'claim', (session) => claim(session, options))
    if (answer === undefined) return undefined
  }
  run.count('claims')
  if (answer.rows.some((event) => event.reclaimed_from !== null)) run.count('reclaimed')
  if (answer.rows.some(({ seq }, index) => index > 0 && seq <= answer.rows[index - 1]!.seq)) {
    run.fault('claim', new Error('not in seq order'))
  }
  return { ...answer, sentAt }
}

class Batch {
  readonly #shards: readonly number[]
  readonly #stoppedKeys = new Set<string>()
  #published: Published[] = []
  #changes: Change[] = []
  #leasedUntil: number
  /** Woke up after its lease had run out, between checking it and sending. */
  #zombie = false

  constructor(
    private readonly run: SoakRun,
    private readonly actor: Actor,
    private readonly batch: Claimed,
  ) {
    this.#shards = [...new Set(batch.rows.map(({ shard }) => shard))]
    this.#leasedUntil = batch.sentAt + leaseMs - marginMs
  }

  async work(): Promise<void> {
    const { run, batch } = this
    const isSlow = run.strikes(0.02)
    for (const event of batch.rows) {
      if (event.ordering_key !== null && this.#stoppedKeys.has(event.ordering_key)) continue
      if (isSlow) await pause(5 + run.random() * 20)
      if (!(await this.#keepLease(isSlow ? 500 : 0)) || !(await this.#handle(event))) return this.#die()
    }
    await this.#finish()
  }

  async #keepLease(reserveMs: number): Promise<boolean> {
    const { run, actor, batch } = this
    if (Date.now() <= this.#leasedUntil - reserveMs || this.#zombie) return true
    const sentAt = Date.now()
    const kept =
      run.random() < 0.7
        ? await run.call(actor, 'renew', (session) => renew(session, batch.token, this.#shards, leaseSeconds))
        : 0
    if (kept === undefined || kept < this.#shards.length) {
      run.count('leases lost')
      return false
    }
    run.count('renewals')
    this.#leasedUntil = sentAt + leaseMs - marginMs
    return true
  }

  /** False: the relay dies. */
  async #handle(event: ClaimedRow): Promise<boolean> {
    const { run, actor, batch } = this
    const dice = run.chaos ? run.random() : 1
    if (dice < 0.012) return this.#change(event, retry(event, run.below(300), run.random() < 0.7 ? 'charged' : 'free'))
    if (dice < 0.03 && event.destination === 'A') return this.#change(event, hold(event, 'A'))
    if (dice < 0.034) return this.#change(event, fail(event, run.random() < 0.6 ? 'block' : 'skip'))
    if (dice < 0.037) {
      run.count('starts')
      const leased = await run.call(actor, 'start', (session) => start(session, batch.token, event.id))
      if (leased !== true || run.random() < 0.1) return false
    }
    run.sendings.push({ at: run.tick(), id: event.id, zombie: this.#zombie })
    if (this.#zombie) run.count('zombie sendings')
    this.#published.push(...published([event]))
    if (run.strikes(0.0007)) return false
    if (run.strikes(0.0008)) {
      await pause(leaseMs + run.random() * 500)
      this.#zombie = run.random() < 0.5
    }
    if (run.strikes(0.003)) await pause(run.random() * 30)
    if (this.#published.length > 30 && run.strikes(0.01)) {
      if ((await this.#settle([])) === undefined) return false
      this.#published = []
      this.#changes = []
    }
    return true
  }

  #change(event: ClaimedRow, change: Change): true {
    this.#changes.push(change)
    if (event.ordering_key !== null) this.#stoppedKeys.add(event.ordering_key)
    return true
  }

  async #finish(): Promise<void> {
    const { run, batch } = this
    if (run.strikes(0.03)) {
      run.count('late settlements')
      await pause(leaseMs + run.random() * 400)
      await this.#settle(null, 0)
      return
    }
    if (this.#shards.length === 1 || !run.strikes(0.3)) {
      await this.#settle(null)
      return
    }
    const [allPublished, allChanges] = [this.#published, this.#changes]
    const shardOf = new Map(batch.rows.map(({ id, shard }) => [id, shard]))
    for (const shard of this.#shards) {
      this.#published = allPublished.filter(({ id }) => shardOf.get(id) === shard)
      this.#changes = allChanges.filter(({ id }) => shardOf.get(id) === shard)
      if ((await this.#settle([shard])) === undefined) return
      if (run.random() < 0.2) await pause(run.random() * 20)
    }
    await run.call(this.actor, 'settle', (session) => settle(session, batch.token, null))
  }

  /** What it had may be settled by somebody's last words; failures that let the key go on may not. */
  async #die(): Promise<void> {
    const { run, actor, batch } = this
    run.count('deaths')
    if (run.random() < 0.5) return
    const changes = this.#changes.filter(({ outcome, block }) => outcome !== 'failed' || block === true)
    await run.call(actor, 'settle', (session) => settle(session, batch.token, this.#published, changes))
  }

  async #settle(done: readonly number[] | null, loss = 0.012): Promise<Settled | undefined> {
    const { run, actor, batch } = this
    for (const { id, outcome, block } of this.#changes) if (outcome === 'failed' && block !== true) run.pass(id)
    const send = (probability: number) =>
      run.call(actor, 'settle', (session) => settle(session, batch.token, this.#published, this.#changes, done), probability)
    let answer = await send(loss)
    if (answer === undefined) {
      if (run.strikes(0.4)) return undefined
      run.count('repeats')
      answer = await send(0)
      if (answer === undefined) return undefined
    }
    const changed = answer.published + answer.retried + answer.held + answer.failed
    if (changed > this.#published.length + this.#changes.length) run.fault('settle', new Error('changed more than asked'))
    for (const what of ['published', 'retried', 'held', 'failed', 'freed'] as const) run.count(what, answer[what])
    return answer
  }
}
