// Runs a command with SQS, SNS and EventBridge served by MiniStack: `npx tsx scripts/with-ministack.ts npx vitest run ...`.
// The command finds it in OUTBOX_TEST_AWS_ENDPOINT. MiniStack: that of OUTBOX_MINISTACK, else installed for this run.
import { spawn } from 'node:child_process'
import { CleanUp } from './deploy-check/clean-up.js'
import { findMiniStack, freePort, startMiniStack } from './deploy-check/ministack.js'

const cleanUp = new CleanUp()
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)))

try {
  const [command, ...args] = process.argv.slice(2)
  if (command === undefined) throw new Error('no command is given: npx tsx scripts/with-ministack.ts COMMAND ...')
  const directory = await cleanUp.directory()
  const executable = await findMiniStack(directory, stop.signal)
  const { endpoint } = await startMiniStack({ executable, directory, port: await freePort(), cleanUp, signal: stop.signal })
  process.exitCode = await new Promise<number>((resolve) => {
    const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, OUTBOX_TEST_AWS_ENDPOINT: endpoint } })
    stop.signal.addEventListener('abort', () => child.kill())
    child.once('error', (error) => {
      console.error(`${command}: ${error.message}`)
      resolve(1)
    })
    child.once('exit', (code) => resolve(code ?? 1))
  })
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
} finally {
  await cleanUp.run()
}
