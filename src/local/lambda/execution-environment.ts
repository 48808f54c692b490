import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { endLine } from './messages.js'
import type { FunctionError, HostMessage, InvokeMessage } from './messages.js'

export interface FunctionDefinition {
  readonly name: string
  /** The bundle that exports `handler`. */
  readonly modulePath: string
  /** The process that loads it: dist/local/lambda-host.mjs. */
  readonly hostPath: string
  readonly environment: Readonly<Record<string, string>>
  /** An invocation is killed after it. */
  readonly timeoutSeconds: number
}

export interface InvocationResult {
  readonly requestId: string
  /** What the handler returned, as it comes out of JSON; null if it failed. */
  readonly result: unknown
  readonly error: FunctionError | null
  /** What it wrote to stdout and stderr, line by line. */
  readonly logs: readonly string[]
  readonly durationMs: number
}

/** Lambda gives a handler 10 s to load; a laptop that starts many at once may need more. */
const INIT_TIMEOUT_MS = 60_000

interface Running {
  readonly requestId: string
  readonly logs: string[]
  outcome: { readonly result: unknown; readonly error: FunctionError | null } | undefined
  hasEnded: boolean
  finish: (error: FunctionError | undefined) => void
}

/** One process of a function, as Lambda has them: it serves one invocation at a time, and dies with one that is too long. */
export class ExecutionEnvironment {
  readonly #definition: FunctionDefinition
  readonly #child: ChildProcess
  readonly #onLine: (line: string) => void
  readonly #ready: Promise<FunctionError | undefined>
  readonly #closed: Promise<void>
  #running: Running | undefined
  #isClosed = false
  #isDoomed = false
  #invocations = 0

  /** Starts the process. `onLine` gets every line that it writes. */
  constructor(definition: FunctionDefinition, onLine: (line: string) => void) {
    this.#definition = definition
    this.#onLine = onLine
    this.#child = fork(definition.hostPath, [definition.modulePath], {
      env: definition.environment,
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream !== null) createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => this.#hear(line))
    }
    this.#closed = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.#isClosed = true
        const how = signal === null ? `exit status ${code ?? 0}` : `signal ${signal}`
        this.#running?.finish({ name: 'Runtime.ExitError', message: `Runtime exited with error: ${how}` })
        resolve()
      })
    })
    this.#ready = this.#whenReady()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** How many invocations this process has begun. */
  get invocations(): number {
    return this.#invocations
  }

  get isAlive(): boolean {
    return !this.#isClosed && !this.#isDoomed && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get isIdle(): boolean {
    return this.isAlive && this.#running === undefined
  }

  /** Runs one invocation. Never throws: whatever goes wrong is in the result, as Lambda has it. */
  async invoke(event: unknown): Promise<InvocationResult> {
    const requestId = randomUUID()
    const begunAt = performance.now()
    this.#invocations += 1
    const logs: string[] = []
    const outcome = await new Promise<{ readonly result: unknown; readonly error: FunctionError | null }>((resolve) => {
      const running: Running = {
        requestId,
        logs,
        outcome: undefined,
        hasEnded: false,
        finish: (error) =>
          resolve(error === undefined ? (running.outcome ?? { result: null, error: null }) : { result: null, error }),
      }
      this.#running = running
      void this.#start(running, event)
    })
    this.#running = undefined
    return { requestId, ...outcome, logs, durationMs: Math.round(performance.now() - begunAt) }
  }

  /** A process that is killed gets no further invocation; one that is stopped still counts as alive. */
  signal(signal: NodeJS.Signals): void {
    this.#isDoomed ||= signal === 'SIGKILL'
    this.#child.kill(signal)
  }

  /** Kills the process and waits until it is gone. */
  async stop(): Promise<void> {
    this.signal('SIGKILL')
    await this.#closed
  }

  async #start(running: Running, event: unknown): Promise<void> {
    const failure = await this.#ready
    if (failure !== undefined) {
      running.finish(failure)
      await this.stop()
      return
    }
    if (!this.isAlive) return
    const { timeoutSeconds } = this.#definition
    const timer = setTimeout(() => {
      this.signal('SIGKILL')
      running.finish({ name: 'Sandbox.Timedout', message: `Task timed out after ${timeoutSeconds.toFixed(2)} seconds` })
    }, timeoutSeconds * 1000)
    const finish = running.finish
    running.finish = (error) => {
      clearTimeout(timer)
      finish(error)
    }
    const message: InvokeMessage = { requestId: running.requestId, event, deadlineMs: Date.now() + timeoutSeconds * 1000 }
    // if the process is gone by now, its end says so
    this.#child.send(message, () => undefined)
  }

  #whenReady(): Promise<FunctionError | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(
        () =>
          resolve({ name: 'Sandbox.Timedout', message: `the handler was not loaded within ${INIT_TIMEOUT_MS / 1000} seconds` }),
        INIT_TIMEOUT_MS,
      )
      const settle = (failure: FunctionError | undefined) => {
        clearTimeout(timer)
        resolve(failure)
      }
      this.#child.on('message', (message: HostMessage) => {
        if (message.kind === 'ready') settle(undefined)
        else if (message.kind === 'failed' && message.requestId === null) settle(message.error)
        else this.#answer(message)
      })
      this.#child.on('error', (error) => settle({ name: 'Runtime.StartError', message: error.message }))
      void this.#closed.then(() => settle({ name: 'Runtime.ExitError', message: 'Runtime exited before the handler was loaded' }))
    })
  }

  #answer(message: Exclude<HostMessage, { kind: 'ready' }>): void {
    const running = this.#running
    if (running?.requestId !== message.requestId) return
    running.outcome =
      message.kind === 'returned'
        ? { result: JSON.parse(message.value) as unknown, error: null }
        : { result: null, error: message.error }
    if (running.hasEnded) running.finish(undefined)
  }

  #hear(line: string): void {
    const running = this.#running
    if (running !== undefined && line === endLine(running.requestId)) {
      running.hasEnded = true
      if (running.outcome !== undefined) running.finish(undefined)
      return
    }
    if (line === '') return
    running?.logs.push(line)
    this.#onLine(line)
  }
}
