import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDataApiDatabase, createOutbox, KeyBusyError, type NewEvent, type Outbox } from '../../src/writer/index.js'
import { startServiceDatabase, type ServiceDatabase } from '../support/outbox-data-api.js'

/** Transactions that nobody ends are ended by the server after so long. */
const idleMs = 2_000

let service: ServiceDatabase
let outbox: Outbox

beforeAll(async () => {
  service = await startServiceDatabase({ transactionIdleMs: idleMs })
  // a commit is given up after 500 ms, its outcome is looked up for as long as it takes
  const { client, resourceArn, secretArn } = service
  outbox = createOutbox({
    database: createDataApiDatabase({
      client,
      resourceArn,
      secretArn,
      database: service.server.database,
      defaultDeadlineMs: 500,
    }),
  })
})
afterEach(async () => {
  service.server.clearFaults()
  await expect.poll(() => service.server.dataApi.openTransactions().length, { timeout: 10_000 }).toBe(0)
  await service.server.db.query('TRUNCATE outbox, outbox_delivery, orders')
  service.server.requests.length = 0
})

const created: NewEvent = { eventType: 'OrderCreated', payload: { orderId: 1 } }
const placeOrder = (event: NewEvent, maxAttempts: number, setting = ''): Promise<readonly string[]> =>
  outbox.transaction(
    async (tx) => {
      if (setting !== '') await tx.execute(setting)
      await tx.execute('INSERT INTO orders (id) VALUES (:id)', { id: 1 })
      return tx.writeEvents([event])
    },
    { maxAttempts },
  )
const count = async (table: string): Promise<number> =>
  Number((await service.server.db.query<{ rows: string }>(`SELECT count(*) AS rows FROM ${table}`))[0]?.rows)
const left = async () => ({ orders: await count('orders'), events: await count('outbox') })
const begun = () => service.server.requests.filter(({ operation }) => operation === 'BeginTransaction').length
const refuseRollback = (name: string, status: number) =>
  service.server.inject({ operation: 'RollbackTransaction', times: 100, fault: { kind: 'error', name, status } })
const gone = 'TransactionNotFoundException'

describe('A commit whose outcome nobody told', () => {
  test('is waited for if it comes late: neither written twice nor called lost', async () => {
    service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'latency', ms: 1_200 } })
    refuseRollback('AccessDeniedException', 403)
    const [id] = await placeOrder(created, 3)
    expect(await left()).toEqual({ orders: 1, events: 1 })
    expect(await service.server.db.query('SELECT id FROM outbox')).toEqual([{ id }])
    expect(begun()).toBe(1)
  })

  test.each([
    ['as it is', ''],
    ['with a time zone of its own', `SET LOCAL TIME ZONE 'Asia/Tokyo'`],
  ])('is waited for if it is still under way while the service knows its transaction no more, %s', async (_, setting) => {
    await service.server.db
      .query(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.2); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`)
    refuseRollback(gone, 404)
    try {
      await placeOrder(created, 3, setting)
      expect(await left()).toEqual({ orders: 1, events: 1 })
      expect(begun()).toBe(1)
    } finally {
      await service.server.db.query('DROP FUNCTION slow CASCADE')
    }
  })

  test('is tried again once the server itself has ended the transaction', async () => {
    service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'latency', ms: idleMs + 500 } })
    refuseRollback('AccessDeniedException', 403)
    const [id] = await placeOrder(created, 2)
    expect(await left()).toEqual({ orders: 1, events: 1 })
    expect(await service.server.db.query('SELECT id FROM outbox')).toEqual([{ id }])
    expect(begun()).toBe(2)
  })

  test('is looked up again if the looking up is cut off', async () => {
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'drop-reply' } })
    service.server.inject({ operation: 'Execute', match: 'AS outcome', fault: { kind: 'drop-reply' } })
    await placeOrder(created, 1)
    expect(await left()).toEqual({ orders: 1, events: 1 })
  })

  test('stays ambiguous, and is not repeated, if the looking up fails for good', async () => {
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'drop-reply' } })
    const fault = { kind: 'error', name: 'AccessDeniedException', status: 403 } as const
    service.server.inject({ operation: 'Execute', match: 'AS outcome', times: 100, fault })
    await expect(placeOrder(created, 3)).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(await left()).toEqual({ orders: 1, events: 1 })
    expect(begun()).toBe(1)
  })
})

describe('A transaction whose only event was there before', () => {
  const again: NewEvent = { ...created, idempotencyKey: 'payment-7' }
  const writeFirst = () => createOutbox({ database: service.database }).transaction((tx) => tx.writeEvents([again]))

  test('is not taken for committed because that event is there', async () => {
    const [first] = await writeFirst()
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'reset' } })
    await expect(placeOrder(again, 1)).rejects.toMatchObject({ kind: 'transaction-lost' })
    expect(await service.server.db.query('SELECT id FROM outbox')).toEqual([{ id: first }])
    refuseRollback(gone, 404)
    await expect(placeOrder(again, 1)).rejects.toMatchObject({ kind: 'transaction-lost' })
    expect(await left()).toEqual({ orders: 0, events: 1 })
  })

  test('is known to be committed by its own trace', async () => {
    const [first] = await writeFirst()
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'drop-reply' } })
    expect(await placeOrder(again, 1)).toEqual([first])
    expect(await left()).toEqual({ orders: 1, events: 1 })
  })
})

describe('An ordering key that another transaction holds', () => {
  const keyed: NewEvent = { ...created, orderingKey: 'customer-7' }
  const hold = async () => {
    // 5 s in production
    await service.server.db.query(`ALTER FUNCTION outbox_enqueue SET lock_timeout = '300ms'`)
    const holder = await service.server.db.connect()
    await holder.query('BEGIN')
    await holder.query(`INSERT INTO outbox (event_type, payload, ordering_key) VALUES ('Held', '{}', 'customer-7')`)
    return holder
  }

  test('is tried again by transaction(), and written once it is free', async () => {
    const holder = await hold()
    const placed = createOutbox({ database: service.database }).transaction((tx) => tx.writeEvents([keyed]))
    await expect.poll(begun).toBe(2)
    await holder.query('COMMIT')
    await placed
    const types = await service.server.db.query<{ event_type: string }>(
      'SELECT o.event_type FROM outbox o JOIN outbox_delivery d ON d.event_id = o.id ORDER BY d.seq',
    )
    expect(types.map(({ event_type }) => event_type)).toEqual(['Held', 'OrderCreated'])
  })

  test('fails transaction() with KeyBusyError when every attempt has met it, and leaves nothing', async () => {
    const holder = await hold()
    const placed = createOutbox({ database: service.database }).transaction((tx) => tx.writeEvents([keyed]))
    await expect(placed).rejects.toBeInstanceOf(KeyBusyError)
    await expect(placed).rejects.toMatchObject({ code: 'KeyBusy', kind: 'rolled-back', sqlState: '55P03' })
    expect(begun()).toBe(3)
    await holder.query('ROLLBACK')
    expect(await left()).toEqual({ orders: 0, events: 0 })
  })

  test('fails writeEvents() of a transaction of your own with KeyBusyError', async () => {
    const holder = await hold()
    const tx = await service.database.begin()
    const placed = createOutbox({ database: service.database }).writeEvents(tx, [keyed])
    await expect(placed).rejects.toBeInstanceOf(KeyBusyError)
    await tx.rollback()
    await holder.query('ROLLBACK')
  })
})
