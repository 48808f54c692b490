// Data API calls per 500 events, counted by the server: whole invocations that drain a backlog, from the schema check at the
// start to the claims at the end that find nothing.
//
//   npx tsx bench/calls.ts [--events 20000] [--bytes 1024,20480] [--json]
import { round } from './support/figures.js'
import { runBench } from './support/run.js'
import { startBenchStack } from './support/stack.js'

const PER_EVENTS = 500
/** Setting `claimBytes`: the answer may have 1 MiB, and the relay asks for so much. */
const CLAIM_BYTES = 700_000
/** What the queue counts for an event beside its payload, type and destination (about). */
const ROW_BYTES = 330

await runBench(
  'calls',
  {
    events: {
      default: 20_000,
      min: PER_EVENTS,
      doc: 'events of 1 kB; of bigger payloads as many as make as many bytes, at least 16,000',
    },
    bytes: { default: [1024, 20_480], min: 20, doc: 'payload bytes' },
  },
  async ({ events, bytes: sizes }, tools) => {
    tools.say('starting a stack')
    const bench = await startBenchStack(tools, { relays: 0, periods: { monitor: 86_400, cleanup: 86_400 } })
    // what is delivered need not be kept: this process would grow by it
    bench.stack.faults.set({ rules: [{ service: 'sqs', operation: 'SendMessageBatch', fault: { kind: 'swallow' } }] })
    // they are invoked once at the start: their calls are not the relay's
    await bench.stack.invoke('monitor')
    await bench.stack.invoke('cleanup')
    const rows = []
    for (const bytes of sizes) {
      const count = Math.min(events, Math.max(16_000, Math.floor((events * 1024) / bytes)))
      tools.say(`${count} events of ${bytes} bytes`)
      await bench.query(
        `INSERT INTO outbox (event_type, payload, destination)
         SELECT 'OrderCreated', '{"x":"' || repeat('x', $2 - 8) || '"}', 'queue' FROM generate_series(1, $1)`,
        [count, bytes],
      )
      rows.push(await drain(bytes, count))
    }
    await bench.stop()
    return {
      tables: { 'Data API calls': rows },
      limits: rows.map(({ bytes, 'calls per 500': value }) => ({
        what: `calls per 500 events of ${bytes} bytes`,
        value,
        allowed: answersFor(bytes) === 1 ? 2.2 : 2 + answersFor(bytes),
      })),
    }

    async function drain(bytes: number, count: number) {
      const before = await bench.dataApiCalls()
      const claims: number[] = []
      const began = performance.now()
      for (let left = count; left > 0;) {
        const { result, error } = await bench.stack.invoke('relay')
        if (error !== null) throw new Error(`the relay failed: ${error.message}`)
        claims.push((result as { readonly claims: number }).claims)
        left = (await bench.stack.state()).backlog.depth
      }
      const calls = (await bench.dataApiCalls()) - before
      return {
        bytes,
        events: count,
        calls,
        claims: claims.reduce((sum, one) => sum + one, 0),
        'calls per 500': round((calls / count) * PER_EVENTS, 2),
        'answers of 1 MiB per 500': Math.ceil((PER_EVENTS * bytes) / 1_048_576),
        'answers of claimBytes per 500': answersFor(bytes),
        seconds: round((performance.now() - began) / 1000, 1),
      }
    }
  },
)

/** Answers that 500 events of this size need. */
function answersFor(bytes: number): number {
  return Math.ceil((PER_EVENTS * (bytes + ROW_BYTES)) / CLAIM_BYTES)
}
