// Relays as separate processes on a local stack, with everything that may break breaking, and a ledger: docs/chaos.md.
//
//   npm run chaos -- [--seed S] [--seconds N] [--relays R] [--writers W] [--scenario name] [--json]
import { randomInt } from 'node:crypto'
import { judge } from './oracles.js'
import { readChaosOptions, usage } from './options.js'
import { runChaos } from './rig.js'

// seven lines about Node.js 20 from the SDK
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'

const actions: (() => Promise<unknown>)[] = []
const tidy = async () => {
  for (const action of actions.splice(0).reverse()) await action().catch(() => undefined)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void tidy().finally(() => process.exit(130)))

/** So many lines of a kind are enough. */
const shownViolations = 20

try {
  const options = readChaosOptions(process.argv.slice(2), randomInt(1_000_000))
  if (options === undefined) {
    console.log(usage())
  } else {
    const evidence = await runChaos(options, {
      atEnd: (action) => actions.push(action),
      say: (line) => console.error(`chaos: ${Math.round(process.uptime())} s: ${line}`),
    })
    const { figures, violations } = judge(evidence)
    for (const violation of violations.slice(0, shownViolations)) console.error(`chaos: VIOLATED ${violation}`)
    if (violations.length > shownViolations) console.error(`chaos: and ${violations.length - shownViolations} more`)
    const result = { seed: options.seed, seconds: options.seconds, ...figures }
    if (options.output === 'text') for (const [name, value] of Object.entries(result)) console.log(`${name.padEnd(16)} ${value}`)
    console.log(JSON.stringify(result))
    if (violations.length > 0) process.exitCode = 1
  }
} catch (error) {
  console.error(`chaos: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  await tidy()
}
// by itself Node.js 20 has been seen to spin in closing the handles of processes that are gone
process.exit()
