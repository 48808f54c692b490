// Memory of a relay process at work with hardly any backlog and with a big one, bytes of the bundle, and the time to load it.
//
//   npx tsx bench/memory.ts [--rows 1000000] [--seconds 60] [--rate 20] [--starts 10] [--json]
import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { percentile, round } from './support/figures.js'
import { runBench, type BenchTools } from './support/run.js'
import { startBenchStack, until, type BenchStack } from './support/stack.js'
import { Traffic } from './support/traffic.js'

const run = promisify(execFile)
const BUNDLE = fileURLToPath(new URL('../dist/lambdas/relay/index.mjs', import.meta.url))
const RELAY = 'relay-1'
const SAMPLE_MS = 250
const FILL_ROWS = 100_000
const KIB_PER_MIB = 1024

await runBench(
  'memory',
  {
    rows: { default: 1_000_000, min: 1, doc: 'events in the big backlog' },
    seconds: { default: 60, min: 5, doc: 'for which the process is watched, each time; a pass takes 75' },
    rate: { default: 20, min: 1, doc: 'events a second while there is no backlog' },
    bytes: { default: 1000, min: 20, doc: 'payload bytes' },
    starts: { default: 10, min: 1, doc: 'processes that load the bundle' },
  },
  async ({ rows, seconds, rate, bytes, starts }, tools) => {
    tools.say('starting a stack')
    // the schedule's own invocation is killed, so that each measurement has a fresh process
    const bench = await startBenchStack(tools, { relays: 1, periods: { relay: 86_400 } })
    // what is delivered need not be kept: this process would grow by it
    bench.stack.faults.set({ rules: [{ service: 'sqs', operation: 'SendMessageBatch', fault: { kind: 'swallow' } }] })
    const load = await measureLoading(starts)

    await killRelay(bench)
    tools.say(`${seconds} s with ${rate} events a second`)
    const traffic = new Traffic(bench, tools)
    const payload = { x: 'x'.repeat(bytes - 8) }
    const event = () => ({ group: 'load', event: { eventType: 'OrderCreated', destination: 'queue', payload } })
    const [none] = await Promise.all([watch(bench, seconds), traffic.run({ perSecond: rate, seconds, event })])
    await until('an empty backlog', 60, async () => (await bench.stack.state()).backlog.depth === 0)
    await killRelay(bench)

    tools.say(`writing ${rows} events`)
    await fill(bench, rows, bytes, tools)
    tools.say(`${seconds} s with a backlog of ${rows}`)
    const many = await watch(bench, seconds)
    await traffic.stop()
    await bench.stop()
    return {
      tables: {
        'resident memory of a relay process, MiB': [
          { backlog: 0, ...none },
          { backlog: rows, ...many },
        ],
        bundle: [await bundleBytes()],
        'loading the bundle in a new process': [load],
      },
      limits: [],
    }
  },
)

async function killRelay({ stack }: BenchStack): Promise<void> {
  await until('a relay process', 60, async () => (await stack.state()).relays.length > 0)
  for (const { pid } of (await stack.state()).relays) stack.signalRelay(pid, 'SIGKILL')
  await until('the end of the relay processes', 10, async () => (await stack.state()).relays.length === 0)
}

/** Invokes a relay in a new process, and samples its memory. */
async function watch(bench: BenchStack, seconds: number) {
  const delivered = async () => Number((await bench.query<{ n: string }>('SELECT count(*) AS n FROM outbox_receipt'))[0]!.n)
  const before = await delivered()
  // it goes on when the watch is over: it is killed
  void bench.stack.invokeRelay(RELAY)
  await until('the relay process', 60, async () => (await bench.stack.state()).relays.length > 0)
  const pid = (await bench.stack.state()).relays[0]!.pid
  const samples: number[] = []
  const endsAt = performance.now() + seconds * 1000
  while (performance.now() < endsAt) {
    await pause(SAMPLE_MS)
    const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)])
    samples.push(Number(stdout.trim()) / KIB_PER_MIB)
  }
  return {
    delivered: (await delivered()) - before,
    'p50 MiB': round(percentile(samples, 0.5), 1),
    'max MiB': round(percentile(samples, 1), 1),
    samples: samples.length,
  }
}

async function fill(bench: BenchStack, rows: number, bytes: number, tools: BenchTools): Promise<void> {
  for (let done = 0; done < rows; done += FILL_ROWS) {
    await bench.query(
      `INSERT INTO outbox (event_type, payload, destination, ordering_key)
       SELECT 'OrderCreated', '{"x":"' || repeat('x', $2::int - 8) || '"}', 'queue', CASE WHEN i % 2 = 0 THEN 'key-' || (random() * 10000)::int END
         FROM generate_series(1, $1::int) i`,
      [Math.min(FILL_ROWS, rows - done), bytes],
    )
    if (done > 0 && done % (5 * FILL_ROWS) === 0) tools.say(`${done} written`)
  }
}

async function bundleBytes() {
  const { size } = await stat(BUNDLE)
  return { file: 'dist/lambdas/relay/index.mjs', bytes: size, 'bytes gzipped': gzipSync(await readFile(BUNDLE)).length }
}

/** The time that the module's own code takes, without that of Node.js itself. */
async function measureLoading(starts: number) {
  const script = `const began = performance.now(); await import(${JSON.stringify(pathToFileURL(BUNDLE).href)})
    console.log(JSON.stringify({ ms: performance.now() - began, mib: process.memoryUsage().rss / 1024 ** 2 })); process.exit(0)`
  const loads: { readonly ms: number; readonly mib: number }[] = []
  for (let start = 0; start < starts; start++) {
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script])
    loads.push(JSON.parse(stdout) as { readonly ms: number; readonly mib: number })
  }
  const milliseconds = loads.map(({ ms }) => ms)
  return {
    starts,
    'p50 ms': round(percentile(milliseconds, 0.5)),
    'max ms': round(percentile(milliseconds, 1)),
    'p50 MiB afterwards': round(
      percentile(
        loads.map(({ mib }) => mib),
        0.5,
      ),
      1,
    ),
  }
}
