import { setTimeout as pause } from 'node:timers/promises'
import type { LocalStack } from '../src/local/stack.js'
import type { FaultPhase } from './faults.js'
import type { Fleet } from './relays.js'
import type { Blow } from './schedule.js'

/** Lets faults happen, and counts them. */
export class Injector {
  readonly #counts = new Map<string, number>()
  #database: Promise<void> = Promise.resolve()

  constructor(
    private readonly stack: Pick<LocalStack, 'faults' | 'postgres'>,
    private readonly fleet: Fleet,
  ) {}

  /** By kind: of requests by service and kind, of processes by blow. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  setPhase({ seed, rules }: FaultPhase): void {
    this.#harvest()
    this.stack.faults.set({ seed, rules: [...rules] })
  }

  async strike(blow: Blow): Promise<void> {
    switch (blow.kind) {
      case 'kill':
        if (this.fleet.kill(blow.relay)) this.#count('relay kill')
        return
      case 'freeze':
        if (this.fleet.freeze(blow.relay, blow.ms)) this.#count('relay freeze')
        return
      case 'timeout':
        if (this.fleet.freeze(blow.relay, null)) this.#count('relay timeout')
        return
      case 'deploy':
        this.fleet.deploy()
        this.#count('deployment')
        return
      case 'kill-all':
        this.#count('relay kill', await this.fleet.killAll())
        return
      case 'crash-database':
        // one after the other: a server that is down can not crash
        this.#database = this.#database.then(() => this.#crashDatabase(blow.ms))
        return this.#database
    }
  }

  /** No fault happens any more; the database is up. */
  async heal(): Promise<void> {
    await this.#database
    this.#harvest()
    this.stack.faults.clear()
  }

  async #crashDatabase(ms: number): Promise<void> {
    await this.stack.postgres.crash()
    this.#count('database crash')
    await pause(ms)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.stack.postgres.restart()
        return
      } catch (error) {
        // while it was down, the port may have become that of somebody's connection, for a moment
        if (attempt === 20) throw error
        await pause(200)
      }
    }
  }

  #harvest(): void {
    for (const { service, fault, hits } of this.stack.faults.get().rules) this.#count(`${service} ${fault.kind}`, hits)
  }

  #count(kind: string, times = 1): void {
    if (times > 0) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + times)
  }
}
