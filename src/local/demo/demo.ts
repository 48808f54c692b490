import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { startLocalStack, type LocalStack } from '../stack.js'
import type { ScenarioOptions, ScenarioResult, WorkerMessage } from './scenario.js'

export interface DemoOptions extends ScenarioOptions {
  /** Whether the logs of relays and services go to `say` too. */
  readonly logs: 'shown' | 'hidden'
  /** Gets what a person reads, line by line. */
  readonly say: (line: string) => void
  /** Ends the demo early. */
  readonly stop: AbortSignal
}

const relays = 2

/**
 * Runs the whole of it on this machine and draws the ledger: four writers, two relays, an outage of every destination, a
 * consumer with an inbox. Leaves nothing behind, however it ends.
 *
 * @returns `interrupted` if `stop` came before the ledger
 * @example
 * const result = await demo({ orders: 2000, outageSeconds: 10, broken: 'nothing', logs: 'hidden', say: console.log, stop })
 */
export async function demo(options: DemoOptions): Promise<ScenarioResult | 'interrupted'> {
  const { say, stop } = options
  const log = options.logs === 'shown' ? say : () => undefined
  say(`Starting PostgreSQL, the RDS Data API, SQS, SNS, EventBridge and ${relays} relays on this machine ...`)
  const stack = await startStack(log).catch((error: unknown) => {
    // Ctrl-C reaches what is being started, too: then that is why it failed
    if (stop.aborted) return undefined
    throw error
  })
  if (stack === undefined) return 'interrupted'
  try {
    return stop.aborted ? 'interrupted' : await inWorker(stack, options, log)
  } finally {
    await stack.stop()
  }
}

/** The relay's own settings but for one: no retry waits longer than 2 s in place of 60, because a person is watching. */
async function startStack(log: (line: string) => void): Promise<LocalStack> {
  const folder = await mkdtemp(path.join(tmpdir(), 'outbox-demo-'))
  try {
    const configFile = path.join(folder, 'config.json')
    await writeFile(configFile, JSON.stringify({ retryCapMs: 2000 }))
    return await startLocalStack({ port: 0, relays, configFile, log })
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The shop and the consumer run in a thread of their own: this one is busy being the database's and the queues' server. */
function inWorker(stack: LocalStack, options: DemoOptions, log: (line: string) => void): Promise<ScenarioResult | 'interrupted'> {
  const { orders, outageSeconds, broken, say, stop } = options
  const file = new URL(`./worker${path.extname(import.meta.url)}`, import.meta.url)
  const worker = new Worker(file, { workerData: { stack: stack.description, options: { orders, outageSeconds, broken } } })
  const askToStop = (): void => worker.postMessage('stop')
  stop.addEventListener('abort', askToStop)
  return new Promise<ScenarioResult | 'interrupted'>((resolve, reject) => {
    let result: ScenarioResult | 'interrupted' = 'interrupted'
    worker.on('message', (message: WorkerMessage) => {
      if (message.kind === 'result') result = message.result
      else (message.kind === 'say' ? say : log)(message.line)
    })
    worker.once('error', reject)
    worker.once('exit', () => resolve(result))
  }).finally(() => stop.removeEventListener('abort', askToStop))
}
