import { toEnvironment } from '../src/config/parse.js'
import { relaySettings } from '../src/config/settings.js'
import { parseLocalConfig } from '../src/local/config/local-config.js'
import { planResources } from '../src/local/config/resources.js'
import { lambdaEnvironment } from '../src/local/lambda/environment.js'
import { LocalFunction } from '../src/local/lambda/local-function.js'
import { builtFile, handlerBundle } from '../src/local/lambda/package-root.js'
import { DATABASE, INSTALLATION, loginSecretArn } from '../src/local/stack/database.js'
import type { LocalStackDescription } from '../src/local/stack.js'

export interface FleetOptions {
  readonly description: LocalStackDescription
  /** What `outbox local --config` takes. */
  readonly config: object
  /** One for each relay; 0: its clock is right. */
  readonly clockShiftsMs: readonly number[]
  readonly log: (line: string) => void
}

/** Seconds. Passes (8 s) overlap, as in an account, and an invocation may take more than twice as long as one should. */
const periodSeconds = 6
const timeoutSeconds = 20
/** Invocations of one relay at a time, as a function's reserved concurrency: a slow machine must not drown in processes. */
const concurrency = 2

/** Relays as processes of their own, invoked on a schedule like Lambda functions, that can be hurt. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #make: (relay: number) => LocalFunction
  #relays: LocalFunction[] = []
  /** Of an earlier deployment, still at work. */
  readonly #retired = new Set<LocalFunction>()
  readonly #running = new Map<LocalFunction, Set<Promise<unknown>>>()
  readonly #thaws = new Set<NodeJS.Timeout>()
  #timers: NodeJS.Timeout[] = []
  #timedOut = 0

  constructor(options: FleetOptions) {
    this.#options = options
    const { description, clockShiftsMs, log } = options
    const config = parseLocalConfig(options.config, 'the configuration of the rig')
    const { destinations } = planResources(config.destinations, description.endpoint)
    const { resourceArn } = description
    const place = { resourceArn, secretArn: loginSecretArn('relay'), database: DATABASE, installation: INSTALLATION }
    const settings = toEnvironment(relaySettings, { ...config.relay, ...place, destinations })
    this.#make = (relay) => {
      const name = `relay-${relay + 1}`
      const shiftMs = clockShiftsMs[relay] ?? 0
      const clock = {
        NODE_OPTIONS: `--import=${new URL('shifted-clock.mjs', import.meta.url).href}`,
        OUTBOX_CHAOS_CLOCK_SHIFT_MS: String(shiftMs),
      }
      const environment = { ...lambdaEnvironment(name, description.endpoint), ...settings, ...(shiftMs === 0 ? {} : clock) }
      const hostPath = builtFile('local', 'lambda-host.mjs')
      return new LocalFunction({ name, hostPath, modulePath: handlerBundle('relay'), environment, timeoutSeconds }, log)
    }
  }

  /** Invocations that were ended by their timeout. */
  get timedOut(): number {
    return this.#timedOut
  }

  /** New processes for all relays, and a schedule for each. */
  start(): void {
    this.#replaceAll()
    this.#timers = this.#relays.map((_, relay) => setInterval(() => this.#invoke(relay), periodSeconds * 1000))
  }

  /** Nothing is invoked any more, and every process is killed. Answers how many. */
  async stop(): Promise<number> {
    for (const timer of [...this.#timers, ...this.#thaws]) clearTimeout(timer)
    this.#timers = []
    this.#thaws.clear()
    const { length } = [...this.#relays, ...this.#retired].flatMap((one) => [...one.processes])
    await Promise.all([...this.#relays, ...this.#retired].map((one) => one.stop()))
    await Promise.all([...this.#running.values()].flatMap((running) => [...running]))
    this.#relays = []
    this.#retired.clear()
    this.#running.clear()
    return length
  }

  /** New processes take over at once; the old ones end what they are at. */
  deploy(): void {
    for (const old of this.#relays) {
      this.#retired.add(old)
      void Promise.all([...(this.#running.get(old) ?? [])]).then(async () => {
        await old.stop()
        this.#retired.delete(old)
        this.#running.delete(old)
      })
    }
    this.#replaceAll()
  }

  /** All at once, and new ones in their place. Answers how many. */
  async killAll(): Promise<number> {
    const processes = [...this.#relays, ...this.#retired].flatMap((one) => [...one.processes])
    for (const process of processes) process.signal('SIGKILL')
    await Promise.all([...this.#running.values()].flatMap((running) => [...running]))
    this.#replaceAll()
    return processes.length
  }

  /** Its oldest process; answers whether there was one. */
  kill(relay: number): boolean {
    const process = this.#relays[relay]?.processes[0]
    process?.signal('SIGKILL')
    return process !== undefined
  }

  /** @param ms - null: for good, so that its invocation times out */
  freeze(relay: number, ms: number | null): boolean {
    const process = this.#relays[relay]?.processes[0]
    process?.signal('SIGSTOP')
    if (process !== undefined && ms !== null) {
      const thaw = setTimeout(() => {
        this.#thaws.delete(thaw)
        process.signal('SIGCONT')
      }, ms)
      this.#thaws.add(thaw)
    }
    return process !== undefined
  }

  #replaceAll(): void {
    this.#relays = this.#options.clockShiftsMs.map((_, relay) => this.#make(relay))
    this.#relays.forEach((_, relay) => this.#invoke(relay))
  }

  #invoke(relay: number): void {
    const invoked = this.#relays[relay]
    if (invoked === undefined) return
    const running = this.#running.get(invoked) ?? new Set()
    this.#running.set(invoked, running)
    if (running.size >= concurrency) return
    const invocation = invoked.invoke().then(({ error }) => {
      if (error?.name === 'Sandbox.Timedout') this.#timedOut += 1
      running.delete(invocation)
    })
    running.add(invocation)
  }
}
