// What a slow destination, and a backlog of it, do to another one: by default it answers in 10 s, so that every request to it
// times out. The same load twice in one run: first with both healthy. At the end the slow one is well again, and must get all.
//
//   npx tsx bench/slow-destination.ts [--seconds 120] [--rate 20] [--relays 2] [--answer 10] [--backlog 6000] [--json]
import { spread } from './support/figures.js'
import { runBench } from './support/run.js'
import { startBenchStack, until } from './support/stack.js'
import { Traffic } from './support/traffic.js'

/** Of each destination. */
const KEYS = 20
const WARM_UP_EVENTS = 200

await runBench(
  'slow-destination',
  {
    seconds: { default: 120, min: 1, doc: 'of load, once healthy and once slow' },
    rate: { default: 20, min: 1, doc: 'events a second to each destination, every other one with a key' },
    relays: { default: 2, min: 1, doc: 'relays' },
    answer: { default: 10, min: 0, doc: 'seconds in which the slow one answers; a request times out after 5' },
    backlog: { default: 6000, min: 0, doc: 'events that wait for the slow one when the load begins, a fifth of them with keys' },
  },
  async ({ seconds, rate, relays, answer, backlog }, tools) => {
    tools.say('starting a stack')
    const config = { destinations: { a: { type: 'sqs', queueUrl: 'a' }, b: { type: 'sqs', queueUrl: 'b' } } }
    const bench = await startBenchStack(tools, { relays, config })
    const traffic = new Traffic(bench, tools)
    for (const queue of ['a', 'b']) traffic.consume(queue)
    await until('all relays', 60, async () => (await bench.stack.state()).relays.length >= relays)
    // connections stand and code is loaded before anything counts
    for (let n = 0; n < WARM_UP_EVENTS; n++) {
      const event = { eventType: 'OrderCreated', destination: n % 2 === 0 ? 'a' : 'b', payload: { orderId: n } }
      await traffic.write({ group: 'warm-up', event })
    }
    if (!(await traffic.allReceived('warm-up', 60))) throw new Error('the first events did not arrive within 60 s')

    const measure = async (phase: string) => {
      tools.say(`${seconds} s of load, a ${phase}`)
      const event = (n: number) => {
        const destination = n % 2 === 0 ? 'a' : 'b'
        // pairs go to a and b; every other pair has keys of that destination alone
        const keyed = n % 4 >= 2
        return {
          group: `${phase} ${destination} ${keyed ? 'keyed' : 'unkeyed'}`,
          event: {
            eventType: 'OrderCreated',
            destination,
            payload: { orderId: n },
            ...(keyed ? { orderingKey: `${destination}-${Math.floor(n / 4) % KEYS}` } : {}),
          },
        }
      }
      await traffic.run({ perSecond: 2 * rate, seconds, event })
      for (const group of ['keyed', 'unkeyed']) await traffic.allReceived(`${phase} b ${group}`, 60)
    }
    await measure('healthy')
    const fault = { kind: 'latency', ms: answer * 1000 } as const
    if (answer > 0)
      bench.stack.faults.set({
        rules: [{ service: 'sqs', operation: 'SendMessageBatch', destination: 'a', fault }],
      })
    await bench.query(
      `INSERT INTO outbox (event_type, payload, destination, ordering_key)
       SELECT 'OrderCreated', '{"orderId": ' || i || '}', 'a', CASE WHEN i % 5 = 0 THEN 'a-' || i % 500 END FROM generate_series(1, $1::int) i`,
      [backlog],
    )
    await measure('slow')
    const [aside] = await bench.query<{ held: number; charged: number }>(
      `SELECT CAST(count(*) FILTER (WHERE lane = 2) AS integer) AS held, CAST(count(*) FILTER (WHERE attempts > 0) AS integer) AS charged
         FROM outbox_delivery WHERE destination = 'a'`,
    )
    bench.stack.faults.clear()
    const healedAt = performance.now()
    const waiting = async () =>
      (await bench.query<{ events: number }>('SELECT CAST(count(*) AS integer) AS events FROM outbox_delivery'))[0]?.events ?? 0
    await until('all events of the slow destination', 600, async () => (await waiting()) === 0)
    const drainSeconds = Math.round(performance.now() - healedAt) / 1000
    await traffic.stop()
    await bench.stop()

    const rows = ['healthy', 'slow'].flatMap((phase) =>
      ['unkeyed', 'keyed'].map((kind) => {
        const { written, received, latenciesMs } = traffic.latency(`${phase} b ${kind}`)
        return { a: phase, 'events to b': kind, written, ...spread(latenciesMs), missing: written - received }
      }),
    )
    const failed = bench.failedInvocations()
    return {
      tables: {
        'commit to receive at b, ms': rows,
        'the slow one': [
          {
            answer,
            backlog,
            'aside at the end': aside?.held ?? 0,
            charged: aside?.charged ?? 0,
            'seconds to drain': drainSeconds,
          },
        ],
        handlers: [{ relays, 'failed invocations': failed, 'failed writes': traffic.failedWrites }],
      },
      limits: rows.flatMap(({ a, 'events to b': kind, p99, missing }) => [
        { what: `p99 ms at b, ${kind}, a ${a}`, value: p99, allowed: 1999 },
        { what: `missing at b, ${kind}, a ${a}`, value: missing, allowed: 0 },
      ]),
    }
  },
)
