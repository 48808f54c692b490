import { ExecutionEnvironment } from './execution-environment.js'
import type { FunctionDefinition, InvocationResult } from './execution-environment.js'

/** A function as Lambda runs it: an invocation gets an idle process if there is one, else a new one. */
export class LocalFunction {
  readonly name: string
  readonly #definition: FunctionDefinition
  readonly #log: (line: string) => void
  readonly #environments = new Set<ExecutionEnvironment>()
  #isStopped = false

  /** `log` gets every line that a process of it writes, after the function's name. */
  constructor(definition: FunctionDefinition, log: (line: string) => void) {
    this.name = definition.name
    this.#definition = definition
    this.#log = log
  }

  /** Its living processes, oldest first. */
  get processes(): readonly ExecutionEnvironment[] {
    return [...this.#environments].filter((environment) => environment.isAlive)
  }

  /** Runs one invocation. Never throws. */
  async invoke(event: unknown = {}): Promise<InvocationResult> {
    const environment = this.processes.find(({ isIdle }) => isIdle) ?? this.#start()
    const result = await environment.invoke(event)
    if (!environment.isAlive) this.#environments.delete(environment)
    if (result.error !== null && !this.#isStopped) {
      this.#log(`${this.name} invocation ${result.requestId} failed: ${result.error.name}: ${result.error.message}`)
    }
    return result
  }

  /** Kills its processes; what they were doing ends as failed. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all([...this.#environments].map((environment) => environment.stop()))
    this.#environments.clear()
  }

  #start(): ExecutionEnvironment {
    const environment = new ExecutionEnvironment(this.#definition, (line) => this.#log(`${this.name} ${line}`))
    this.#environments.add(environment)
    return environment
  }
}
