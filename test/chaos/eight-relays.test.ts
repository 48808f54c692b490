import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { watchDoubleClaims } from '../support/double-claims.js'
import { outOfOrder, readQueue, type Delivery } from '../support/queue-reader.js'

const events = Number(process.env.OUTBOX_CHAOS_EVENTS ?? 10_000)
const keys = 1000
const writers = 4
const seed = Number(process.env.OUTBOX_SEED ?? Date.now() % 1_000_000)

describe(`eight relay processes (seed ${seed}; OUTBOX_SEED replays the faults)`, () => {
  let stack: LocalStack
  let client: pg.Client
  const lines: string[] = []
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 8, log: (line) => lines.push(line) })
    client = new pg.Client({ connectionString: stack.description.databaseUrl })
    await client.connect()
  }, 120_000)
  afterAll(async () => {
    await client.end()
    await stack.stop()
  })

  it(`deliver ${events} events of ${keys} keys, with entry errors, missing entries and lost answers: none lost, none out of order, none claimed twice at the same time`, async () => {
    const doubleClaims = await watchDoubleClaims(client)
    const onSqs = (rate: number, fault: object) => ({ service: 'sqs', operation: 'SendMessageBatch', rate, fault })
    stack.faults.set({
      seed,
      rules: [
        onSqs(0.03, { kind: 'entry-error', code: 'InternalError', senderFault: false }),
        onSqs(0.02, { kind: 'entry-missing' }),
        onSqs(0.01, { kind: 'drop-reply' }),
        onSqs(0.01, { kind: 'throttle' }),
        { service: 'rds-data', operation: 'ExecuteStatement', match: 'outbox_settle', rate: 0.02, fault: { kind: 'drop-reply' } },
        { service: 'rds-data', operation: 'ExecuteStatement', match: 'outbox_claim', rate: 0.02, fault: { kind: 'drop-reply' } },
      ],
    } as never)

    const { endpoint, queues, databaseUrl } = stack.description
    const enough = (deliveries: readonly Delivery[]) => new Set(deliveries.map(({ eventId }) => eventId)).size >= events / 2
    const [, queue, fifo] = await Promise.all([
      write(databaseUrl),
      readQueue(endpoint, queues.queue!, throttled(enough), 240_000),
      readQueue(endpoint, queues.fifo!, throttled(enough), 240_000),
    ]).finally(async () => {
      // also when something else went wrong: this would be the reason
      expect(await doubleClaims()).toMatchObject({ takenWhileLeased: 0, withoutLease: 0 })
    })

    const deliveries = [...queue, ...fifo]
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(events)
    expect(outOfOrder(queue)).toEqual([])
    expect(outOfOrder(fifo)).toEqual([])

    // what was accepted last may still be waiting for its settlement
    await expect
      .poll(
        async () => (await client.query('SELECT count(*)::int AS n FROM outbox_receipt WHERE NOT discarded')).rows as unknown,
        {
          timeout: 60_000,
        },
      )
      .toEqual([{ n: events }])
    expect((await client.query('SELECT * FROM outbox_delivery')).rows).toEqual([])
    const { claims, ...double } = await doubleClaims()
    expect(double).toEqual({ takenWhileLeased: 0, withoutLease: 0 })
    expect(claims).toBeGreaterThanOrEqual(events)
    const hits = stack.faults.get().rules.map((rule) => (rule as { hits: number }).hits)
    expect(hits.every((count) => count > 0)).toBe(true)
    const { relays } = await stack.state()
    expect(new Set(relays.map(({ name }) => name)).size).toBe(8)
    const busy = new Set(lines.filter((line) => line.includes('"Published"')).map((line) => line.split(' ')[0]))
    // a pass that begins late finds the queue empty already, in a short run on a busy machine
    expect(busy.size).toBeGreaterThanOrEqual(events >= 50_000 ? 8 : 4)
    console.log(
      `${events} events, ${claims} claims of one, ${deliveries.length - events} duplicates, faults ${hits.join('/')}, ${busy.size} relays at work`,
    )
  })

  /** Each writer owns its keys; within a key the payload's number is commit order. Half the keys go to each queue. */
  async function write(databaseUrl: string): Promise<void> {
    await Promise.all(
      Array.from({ length: writers }, async (_, writer) => {
        const client = new pg.Client({ connectionString: databaseUrl })
        await client.connect()
        const perKey = events / keys
        for (let n = 0; n < perKey; n++) {
          await client.query('BEGIN')
          await client.query(
            `INSERT INTO outbox (event_type, payload, ordering_key, destination)
             SELECT 'Moved', json_build_object('key', k, 'n', $2::int)::text, 'key-' || k, CASE WHEN k % 2 = 0 THEN 'queue' ELSE 'fifo' END
               FROM generate_series($1::int, $3::int, $4::int) k ORDER BY random()`,
            [writer, n, keys - 1, writers],
          )
          // every fifth transaction writes something that is never committed
          if (n % 5 === 0) {
            await client.query('SAVEPOINT undone')
            await client.query(`INSERT INTO outbox (event_type, payload, destination) VALUES ('Undone', '{}', 'queue')`)
            await client.query('ROLLBACK TO undone')
          }
          await client.query('COMMIT')
        }
        await client.end()
      }),
    )
  }
})

/** The same condition, looked at only when something was added. */
function throttled(condition: (deliveries: readonly Delivery[]) => boolean): (deliveries: readonly Delivery[]) => boolean {
  let checked = -1
  return (deliveries) => {
    if (deliveries.length < events / 2 || deliveries.length === checked) return false
    checked = deliveries.length
    return condition(deliveries)
  }
}
