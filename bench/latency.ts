// Commit to receive on the local stack, profile continuous, the schedule's ticks late by a random jitter.
//
//   npx tsx bench/latency.ts [--seconds 600] [--rate 20] [--every 7] [--jitter 10] [--relays 2] [--json]
//
// Every rate and interval, with every jitter, has a stack of its own; all are measured at the same time.
import { spread } from './support/figures.js'
import type { Limit, Row } from './support/report.js'
import { runBench, type BenchTools } from './support/run.js'
import { startBenchStack } from './support/stack.js'
import { Traffic } from './support/traffic.js'

/** Above it a figure is only reported: no period of 60 s with passes of 75 s leaves no seam then. */
const LIMITED_JITTER_SECONDS = 10
/** A relay that is late by a minute comes; what has not arrived by then is missing. */
const GIVE_UP_SECONDS = 150

interface Case {
  readonly load: string
  readonly perSecond: number
  readonly jitter: number
}

await runBench(
  'latency',
  {
    seconds: { default: 600, min: 1, doc: 'of load' },
    rate: { default: [20], min: 0, doc: 'events a second; 0: none of these' },
    every: { default: [7], min: 0, doc: 'one event in so many seconds; 0: none of these' },
    jitter: { default: [10], min: 0, doc: 'seconds by which an invocation is late at most' },
    relays: { default: 2, min: 1, doc: 'relays, invoked once a minute each' },
  },
  async ({ seconds, rate, every, jitter: jitters, relays }, tools) => {
    const loads = [
      ...rate.filter((perSecond) => perSecond > 0).map((perSecond) => ({ load: `${perSecond}/s`, perSecond })),
      ...every.filter((one) => one > 0).map((one) => ({ load: `1 per ${one} s`, perSecond: 1 / one })),
    ]
    const cases = loads.flatMap((load) => jitters.map((jitter): Case => ({ ...load, jitter })))
    const started: (() => Promise<{ readonly row: Row; readonly limits: readonly Limit[] }>)[] = []
    // one after the other, so that no start disturbs a measurement
    for (const one of cases) started.push(await prepare(one, { seconds, relays }, tools))
    const measured = await Promise.all(started.map((measure) => measure()))
    return {
      tables: { 'commit to receive, ms': measured.map(({ row }) => row) },
      limits: measured.flatMap(({ limits }) => limits),
    }
  },
)

/** Starts a stack and lets one event through; answers how to measure. */
async function prepare(
  { load, perSecond, jitter }: Case,
  { seconds, relays }: { readonly seconds: number; readonly relays: number },
  tools: BenchTools,
): Promise<() => Promise<{ readonly row: Row; readonly limits: readonly Limit[] }>> {
  tools.say(`starting a stack for ${load}, jitter ${jitter} s`)
  const bench = await startBenchStack(tools, { relays, relayJitterSeconds: jitter })
  const traffic = new Traffic(bench, tools)
  traffic.consume('queue')
  const eventOf = (group: string) => (n: number) => ({
    group,
    event: { eventType: 'OrderCreated', destination: 'queue', payload: { orderId: n } },
  })
  await traffic.write(eventOf('first')(0))
  if (!(await traffic.allReceived('first', 60))) throw new Error('the first event did not arrive within 60 s')

  return async () => {
    await traffic.run({ perSecond, seconds, event: eventOf('measured') })
    await traffic.allReceived('measured', GIVE_UP_SECONDS)
    const { written, received, latenciesMs } = traffic.latency('measured')
    await traffic.stop()
    await bench.stop()
    const { p50, p99, max } = spread(latenciesMs)
    const missing = written - received + traffic.failedWrites
    const where = `${load}, jitter ${jitter} s`
    const limits = [
      { what: `p50 ms, ${where}`, value: p50, allowed: 299 },
      { what: `p99 ms, ${where}`, value: p99, allowed: 999 },
      { what: `missing, ${where}`, value: missing, allowed: 0 },
    ]
    const failed = bench.failedInvocations()
    return {
      row: { load, 'jitter s': jitter, relays, events: written, p50, p99, max, missing, 'failed invocations': failed },
      limits: jitter <= LIMITED_JITTER_SECONDS ? limits : [],
    }
  }
}
