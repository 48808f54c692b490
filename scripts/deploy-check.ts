// Deploys the stack to an account that others emulate (MiniStack), on a cluster whose Data API is our server's, and shows that
// it works: `npm run deploy-check`. Needs Python 3.10 with venv, or OUTBOX_MINISTACK, the path of a MiniStack that is there.
// Last line: `N passed, N failed`. What it cannot show: docs/verified.md.
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { credentials } from './deploy-check/cdk.js'
import { CleanUp } from './deploy-check/clean-up.js'
import { enforcedSteps } from './deploy-check/enforced-run.js'
import { findMiniStack } from './deploy-check/ministack.js'
import { plainSteps } from './deploy-check/plain-run.js'
import { tail } from './deploy-check/program.js'
import { openSite } from './deploy-check/site.js'
import { messageOf, showAll, type Result } from './deploy-check/steps.js'

/** Four minutes on a quiet machine; beyond this, something hangs. */
const LIMIT_SECONDS = 900

const { values: flags } = parseArgs({
  options: { only: { type: 'string' }, logs: { type: 'boolean', default: false } },
})
// the local stack's Data API reads secrets with them at MiniStack, as the root user that MiniStack knows
process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId
process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey
delete process.env['AWS_SESSION_TOKEN']
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'

const cleanUp = new CleanUp()
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)))
const limit = setTimeout(() => stop.abort(new Error(`not done within ${LIMIT_SECONDS} s`)), LIMIT_SECONDS * 1000)

const runs = [
  { name: 'deploy', iam: 'ignored', steps: plainSteps },
  { name: 'iam', iam: 'enforced', steps: enforcedSteps },
] as const

/** One run, in an account of its own. What hinders it counts as a failure. */
async function run({ name, iam, steps }: (typeof runs)[number], executable: string): Promise<readonly Result[]> {
  try {
    const { signal } = stop
    const site = await openSite({ executable, iam, cleanUp, signal })
    const results = await showAll(name, await steps(site, signal), signal)
    const isGreen = results.every(({ failure }) => failure === undefined)
    if (!isGreen || flags.logs) console.log(`MiniStack of ${name}:\n${tail(site.miniStack.output(), flags.logs ? 10_000 : 60)}`)
    return results
  } catch (error) {
    return failed(name, error)
  }
}

function failed(name: string, error: unknown): readonly Result[] {
  const failure = messageOf(error)
  console.log(`FAILED ${name}: ${failure}`)
  return [{ name, failure }]
}

async function main(): Promise<readonly Result[]> {
  // both runs take the handlers from dist/, and so does each of their calls of the CDK
  await build()
  const executable = await findMiniStack(await cleanUp.directory(), stop.signal)
  const chosen = runs.filter(({ name }) => flags.only === undefined || flags.only === name)
  return (await Promise.all(chosen.map((one) => run(one, executable)))).flat()
}

const results = await main().catch((error: unknown) => failed('start', error))
await cleanUp.run()
clearTimeout(limit)

const failures = results.filter(({ failure }) => failure !== undefined)
const passed = results.length - failures.length
// the two numbers and the failures, as a JSON report of vitest has them, for whoever adds up several runs
const report = process.env['OUTBOX_TEST_RESULTS']
if (report !== undefined) {
  const assertionResults = failures.map(({ name, failure }) => ({ status: 'failed', fullName: name, failureMessages: [failure] }))
  const testResults = [{ name: fileURLToPath(import.meta.url), assertionResults }]
  await writeFile(report, JSON.stringify({ numPassedTests: passed, numFailedTests: failures.length, testResults }))
}
console.log(`${passed} passed, ${failures.length} failed`)
process.exitCode = failures.length === 0 && passed > 0 ? 0 : 1
