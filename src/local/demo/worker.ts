import { parentPort, workerData } from 'node:worker_threads'
import type { LocalStackDescription } from '../stack.js'
import { runScenario, type ScenarioOptions, type WorkerMessage } from './scenario.js'

// The thread of the demo's own services: `demo.ts` starts it.

const { stack, options } = workerData as { readonly stack: LocalStackDescription; readonly options: ScenarioOptions }
const tell = (message: WorkerMessage): void => parentPort?.postMessage(message)
const stop = new AbortController()
parentPort?.on('message', () => stop.abort())

try {
  const result = await runScenario(stack, options, {
    say: (line) => tell({ kind: 'say', line }),
    log: (line) => tell({ kind: 'log', line }),
    stop: stop.signal,
  })
  tell({ kind: 'result', result })
} finally {
  parentPort?.close()
}
