// What a slow destination, and a backlog of it, do to another one: by default it answers in 10 s, so that every request to it
// times out. The same load twice in one run: first with both healthy. At the end the slow one is well again, and must get all,
// each key in order.
//
//   npx tsx bench/slow-destination.ts [--seconds 120] [--rate 20] [--relays 2] [--answer 10] [--backlog 6000] [--json]
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { setTimeout as pause } from 'node:timers/promises'
import { spread } from './support/figures.js'
import { runBench, type BenchTools } from './support/run.js'
import { startBenchStack, until, type BenchStack } from './support/stack.js'
import { Traffic } from './support/traffic.js'

/** Of each destination. */
const KEYS = 20
const WARM_UP_EVENTS = 200

/** Keeps what goes away with a row of the queue: its seq, by which the events of a key are in order. */
const NOTE_ORDER = `
CREATE TABLE bench_order (event_id uuid NOT NULL, seq bigint NOT NULL);
CREATE FUNCTION bench_note_order() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO bench_order SELECT event_id, seq FROM queued WHERE destination = 'a';
  RETURN NULL;
END $$;
CREATE TRIGGER bench_order AFTER INSERT ON outbox_delivery REFERENCING NEW TABLE AS queued
  FOR EACH STATEMENT EXECUTE FUNCTION bench_note_order()`

/**
 * What queue `a` got, in its order: one receiver with one request at a time, since the answers to two can overtake each other.
 * A message that comes again is known by its event.
 */
function receiveAtA({ stack }: BenchStack, tools: BenchTools) {
  const { endpoint, region, queues } = stack.description
  const QueueUrl = queues['a']
  if (QueueUrl === undefined) throw new Error('no queue a')
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  const client = new SQSClient({ endpoint, region, credentials, useQueueUrlAsEndpoint: false })
  const ending = new AbortController()
  const abortSignal = ending.signal
  const firstReceipts = new Set<string>()
  const receive = async () => {
    while (!abortSignal.aborted) {
      try {
        const request = new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20 })
        const { Messages = [] } = await client.send(request, { abortSignal })
        for (const { Body = '{}' } of Messages) firstReceipts.add((JSON.parse(Body) as { readonly id: string }).id)
        if (Messages.length === 0) continue
        const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
        await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
      } catch {
        // stopped, or a broken connection: the loop's condition tells
        await pause(50)
      }
    }
  }
  const receiving = receive()
  const stop = async () => {
    ending.abort()
    await receiving
    client.destroy()
  }
  tools.atEnd(stop)
  return { firstReceipts, stop }
}

interface WrittenEvent {
  readonly id: string
  readonly key: string | null
}

/** Of events in the order in which they were written: how many came before an earlier one of their key. */
function countOutOfOrder(written: readonly WrittenEvent[], firstReceipts: ReadonlySet<string>): number {
  const places = new Map([...firstReceipts].map((id, place) => [id, place]))
  const latest = new Map<string, number>()
  return written.filter(({ id, key }) => {
    const place = places.get(id)
    if (key === null || place === undefined) return false
    const before = latest.get(key) ?? -1
    latest.set(key, Math.max(before, place))
    return place < before
  }).length
}

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
    await bench.query(NOTE_ORDER)
    const traffic = new Traffic(bench, tools)
    traffic.consume('b')
    const a = receiveAtA(bench, tools)
    await until('all relays', 60, async () => (await bench.stack.state()).relays.length >= relays)
    // connections stand and code is loaded before anything counts
    for (let n = 0; n < WARM_UP_EVENTS; n++) {
      const destination = n % 2 === 0 ? 'a' : 'b'
      const event = { eventType: 'OrderCreated', destination, payload: { orderId: n } }
      await traffic.write({ group: `warm-up ${destination}`, event })
    }
    await until('the first events at a', 60, () => a.firstReceipts.size >= WARM_UP_EVENTS / 2)
    if (!(await traffic.allReceived('warm-up b', 60))) throw new Error('the first events did not arrive at b within 60 s')

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
    const written = await bench.query<{ id: string; key: string | null }>(
      `SELECT CAST(o.id AS text) AS id, o.ordering_key AS key FROM outbox o LEFT JOIN bench_order b ON b.event_id = o.id
        WHERE o.destination = 'a' ORDER BY b.seq`,
    )
    const missingAtA = () => written.filter(({ id }) => !a.firstReceipts.has(id)).length
    // what never comes is a figure too
    await until('all messages at a', 60, () => missingAtA() === 0).catch(() => undefined)
    await traffic.stop()
    await a.stop()
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
            written: written.length,
            'of them with keys': written.filter(({ key }) => key !== null).length,
          },
        ],
        handlers: [{ relays, 'failed invocations': failed, 'failed writes': traffic.failedWrites }],
      },
      limits: [
        ...rows.flatMap(({ a: phase, 'events to b': kind, p99, missing }) => [
          { what: `p99 ms at b, ${kind}, a ${phase}`, value: p99, allowed: 1999 },
          { what: `missing at b, ${kind}, a ${phase}`, value: missing, allowed: 0 },
        ]),
        { what: 'missing at a', value: missingAtA(), allowed: 0 },
        { what: 'before an earlier one of their key at a', value: countOutOfOrder(written, a.firstReceipts), allowed: 0 },
      ],
    }
  },
)
