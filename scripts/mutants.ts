// Breaks the product in ways that must not go unnoticed, one at a time, in copies of the checkout, and shows which test notices:
// `npm run mutants [-- --only NAME ...]`. Last line: `N killed, N alive`.
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { CleanUp } from './deploy-check/clean-up.js'
import { messageOf } from './deploy-check/steps.js'
import { copyCheckout, type Checkout } from './mutants/checkout.js'
import { mutants } from './mutants/list.js'
import type { Mutant } from './mutants/mutant.js'
import { isAssertion, isNamed, runTests } from './mutants/test-run.js'

/** Beside each other: most tests wait for a database or a timer, but some measure time. */
const COPIES = 2
/** The killers of one mutant take a minute at most on a quiet machine; what takes longer hangs. */
const MUTANT_LIMIT_MS = 300_000
/** All of them, each once. */
const SOUND_LIMIT_MS = 1_200_000

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)))
const cleanUp = new CleanUp()
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)))

/** The mutants to try; throws for a name that none has. */
function chosen(): readonly Mutant[] {
  const { only } = parseArgs({ options: { only: { type: 'string', multiple: true } } }).values
  if (only === undefined) return mutants
  const unknown = only.find((name) => !mutants.some((mutant) => mutant.name === name))
  if (unknown !== undefined) throw new Error(`--only is "${unknown}"; allowed: ${mutants.map(({ name }) => name).join(', ')}`)
  return mutants.filter(({ name }) => only.includes(name))
}

/** Unless every killer is green without a mutant, its being red says nothing. */
async function requireSound({ directory }: Checkout, tried: readonly Mutant[]): Promise<void> {
  const killers = tried.flatMap((mutant) => mutant.killers)
  const { passed, failed, hindrance } = await runTests({
    directory,
    killers,
    limitMs: SOUND_LIMIT_MS,
    signal: stop.signal,
  })
  if (hindrance !== null) throw new Error(`without a mutant: ${hindrance}`)
  const red = failed.map(({ file, test, message }) => `${file} > ${test}: ${message.split('\n')[0] ?? ''}`)
  if (red.length > 0) throw new Error(`red without a mutant:\n  ${red.join('\n  ')}`)
  const missing = killers.filter((killer) => !passed.some((test) => isNamed(killer, test)))
  if (missing.length > 0) throw new Error(`no such test:\n  ${missing.map(({ file, test }) => `${file} > ${test}`).join('\n  ')}`)
}

/** null: killed. Else why not. */
async function tryMutant(checkout: Checkout, mutant: Mutant): Promise<string | null> {
  const { directory } = checkout
  const { killers } = mutant
  const { passed, failed, hindrance } = await checkout.whileBroken(mutant, () =>
    runTests({ directory, killers, limitMs: MUTANT_LIMIT_MS, signal: stop.signal }),
  )
  const killer = failed.find((test) => killers.some((named) => isNamed(named, test)) && isAssertion(test))
  if (killer !== undefined) {
    console.log(`killed  ${mutant.name}: ${killer.file} > ${killer.test}`)
    return null
  }
  if (failed[0] !== undefined) return `failed, but by no assertion: ${failed[0].test}: ${failed[0].message.split('\n')[0] ?? ''}`
  return hindrance ?? `${passed.length} tests passed`
}

async function main(): Promise<{ readonly killed: number; readonly alive: number }> {
  const tried = chosen()
  let killed = 0
  try {
    const checkouts = await Promise.all(Array.from({ length: Math.min(COPIES, tried.length) }, () => copyCheckout(root, cleanUp)))
    const [first] = checkouts
    if (first === undefined) return { killed, alive: 0 }
    await requireSound(first, tried)
    const queue = [...tried]
    const work = async (checkout: Checkout): Promise<void> => {
      for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
        const why = await tryMutant(checkout, mutant)
        if (why === null) killed += 1
        else console.log(`ALIVE   ${mutant.name} (${mutant.breaks}): ${why}`)
      }
    }
    await Promise.all(checkouts.map(work))
  } catch (error) {
    stop.abort(error)
    console.error(messageOf(error))
  }
  return { killed, alive: tried.length - killed }
}

let outcome = { killed: 0, alive: 1 }
try {
  outcome = await main()
} catch (error) {
  console.error(messageOf(error))
}
await cleanUp.run()
console.log(`${outcome.killed} killed, ${outcome.alive} alive`)
process.exit(outcome.alive === 0 ? 0 : 1)
