import { readOptions, type OptionDefinitions, type OptionValues } from './options.js'
import { asJson, asText, circumstances, type Report } from './report.js'

// seven lines about Node.js 20 from the SDK
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'

/** What a running bench may use of its surroundings. */
export interface BenchTools {
  /** Whatever ends the bench, this is done, the last one first. */
  atEnd(action: () => Promise<unknown>): void
  /** A line for who watches; it goes to stderr. */
  say(line: string): void
}

/**
 * Runs a bench from its command line to its report on stdout. Exit code 1 if it could not measure; a missed limit is a
 * figure, and no failure.
 */
export async function runBench<D extends OptionDefinitions>(
  name: string,
  definitions: D,
  measure: (options: OptionValues<D>, tools: BenchTools) => Promise<Report>,
): Promise<void> {
  const actions: (() => Promise<unknown>)[] = []
  const tidy = async () => {
    for (const action of actions.splice(0).reverse()) await action().catch(() => undefined)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void tidy().finally(() => process.exit(130)))
  try {
    const parsed = readOptions(name, definitions, process.argv.slice(2))
    if (parsed.kind === 'help') {
      console.log(parsed.text)
      return
    }
    const where = circumstances()
    const report = await measure(parsed.values, {
      atEnd: (action) => actions.push(action),
      say: (line) => console.error(`${name}: ${line}`),
    })
    console.log((parsed.output === 'json' ? asJson : asText)(name, parsed.values, where, report))
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  } finally {
    await tidy()
  }
  // by itself Node.js 20 has been seen to spin in closing the handles of processes that are gone
  process.exit()
}
