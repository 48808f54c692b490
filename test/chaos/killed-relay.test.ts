import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type FaultSetting, type LocalStack } from '../../src/local/stack.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'
import { outOfOrder, readQueue } from '../support/queue-reader.js'

const events = 300
const keys = 20

describe('a relay process that is killed', () => {
  let stack: LocalStack
  let database: pg.Client
  let clients: OutboxClients
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 1, log: () => undefined })
    database = new pg.Client({ connectionString: stack.description.databaseUrl })
    await database.connect()
    clients = outboxClients(stack.description)
  }, 120_000)
  afterEach(() => stack.faults.clear())
  afterAll(async () => {
    clients.destroy()
    await database.end()
    await stack.stop()
  })

  const write = (moment: string) =>
    database.query(
      `INSERT INTO outbox (event_type, payload, ordering_key, destination)
       SELECT $1, json_build_object('key', i % $2::int, 'n', i / $2::int)::text, $1 || i % $2::int, 'queue'
         FROM generate_series(0, $3::int - 1) i`,
      [moment, keys, events],
    )
  const recorded = async (moment: string) => {
    const sql = 'SELECT r.event_id::text AS id FROM outbox_receipt r JOIN outbox o ON o.id = r.event_id WHERE o.event_type = $1'
    return (await database.query<{ id: string }>(sql, [moment])).rows.map(({ id }) => id)
  }
  const faulty = (rules: readonly object[]) => stack.faults.set({ seed: 1, rules } as unknown as FaultSetting)
  const hits = () => stack.faults.get().rules.reduce((sum, rule) => sum + rule.hits, 0)

  const onQueue = (fault: object) => ({ service: 'sqs', operation: 'SendMessageBatch', fault })
  const onDatabase = (match: string, fault: object) => ({ service: 'rds-data', match, fault })
  const late = onQueue({ kind: 'latency', ms: 500 })

  it.each([
    ['while requests are out that arrive all the same', [late]],
    ['while requests are out that never arrive', [late, onQueue({ kind: 'reset' })]],
    ['between the destination’s answer and the settlement', [onDatabase('outbox_settle', { kind: 'reset' })]],
    ['after a claim whose answer never came', [onDatabase('outbox_claim', { kind: 'drop-reply' })]],
  ])('%s loses nothing, keeps the order of each key, and doubles nothing that was recorded before', async (moment, rules) => {
    const { endpoint, queues } = stack.description
    faulty(rules)
    await write(moment)
    // a claim that finds nothing may be met too, but leases nothing
    await expect.poll(async () => [(await leased()) > 0, hits() > 0], { timeout: 30_000 }).toEqual([true, true])
    const [relay] = (await stack.state()).relays
    expect(stack.signalRelay(relay!.pid, 'SIGKILL')).toBe('sent')
    // (the schedule may have begun another one meanwhile)
    await expect.poll(async () => (await stack.state()).relays.filter(({ pid }) => pid === relay!.pid)).toEqual([])
    const before = await recorded(moment)
    expect(before.length).toBeLessThan(events)
    stack.faults.clear()

    // as if its time had passed; a claim of the dead relay that was still on its way leases once more, for 30 s
    await database.query(`UPDATE outbox_shard SET lease_until = '-infinity'`)
    void stack.invokeRelay('relay-1')
    await expect.poll(async () => (await recorded(moment)).length, { timeout: 90_000 }).toBe(events)
    expect((await database.query('SELECT * FROM outbox_delivery')).rows).toEqual([])

    const waiting = await clients.waiting('queue')
    const deliveries = await readQueue(endpoint, queues['queue']!, ({ length }) => length >= waiting)
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(events)
    expect(outOfOrder(deliveries)).toEqual([])
    const times = new Map<string, number>()
    for (const { eventId } of deliveries) times.set(eventId, (times.get(eventId) ?? 0) + 1)
    expect(before.filter((id) => times.get(id) !== 1)).toEqual([])
  })

  async function leased(): Promise<number> {
    return (await database.query('SELECT FROM outbox_shard WHERE lease_token IS NOT NULL')).rowCount ?? 0
  }
})
