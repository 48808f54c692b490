import { BeginTransactionCommand, CommitTransactionCommand } from '@aws-sdk/client-rds-data'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { eventsByIdempotencyKeyStatement, insertEventsStatement } from '../../src/store/postgres/insert-events.js'
import { createOutbox, type NewEvent, type Outbox, type OutboxTransaction } from '../../src/writer/index.js'
import { startServiceDatabase, type ServiceDatabase } from '../support/outbox-data-api.js'

let service: ServiceDatabase
let outbox: Outbox

beforeAll(async () => {
  service = await startServiceDatabase()
  outbox = createOutbox({ database: service.database })
})
afterEach(async () => {
  service.server.clearFaults()
  await expect.poll(() => service.server.dataApi.openTransactions().length, { timeout: 10_000 }).toBe(0)
  await service.server.db.query('TRUNCATE outbox, outbox_delivery, orders')
  service.server.requests.length = 0
})

const event = (idempotencyKey: string | undefined, orderId = 1): NewEvent => ({
  eventType: 'OrderCreated',
  payload: { orderId },
  idempotencyKey,
})
const insertOrder = (tx: OutboxTransaction, id: number) => tx.execute('INSERT INTO orders (id) VALUES (:id)', { id })
const write = (events: readonly NewEvent[], orderId?: number): Promise<readonly string[]> =>
  outbox.transaction(async (tx) => {
    if (orderId !== undefined) await insertOrder(tx, orderId)
    return tx.writeEvents(events)
  })
const written = async (): Promise<{ id: string; payload: string }[]> =>
  service.server.db.query('SELECT o.id, o.payload FROM outbox o JOIN outbox_delivery d ON d.event_id = o.id ORDER BY d.seq')
const orders = async (): Promise<number[]> =>
  (await service.server.db.query<{ id: string }>('SELECT id FROM orders ORDER BY id')).map(({ id }) => Number(id))
const calls = (operation: string): number => service.server.requests.filter((request) => request.operation === operation).length
/** Sessions of this database that wait for another one's lock. */
const waiting = async (): Promise<number> =>
  (
    await service.server.db.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'transactionid'`,
    )
  ).length

describe('An event whose idempotency key exists', () => {
  test('answers the id of the event that has it, and the transaction goes on; its other content is ignored', async () => {
    const [first] = await write([event('payment-7', 1)], 1)
    const again = await write([event('payment-7', 2)], 2)
    expect(again).toEqual([first])
    expect(await written()).toEqual([{ id: first, payload: '{"orderId":1}' }])
    expect(await orders()).toEqual([1, 2])
  })

  test('costs no call unless it exists', async () => {
    await write([event('payment-7')])
    expect(calls('Execute')).toBe(1)
    await write([event('payment-7')])
    expect(calls('Execute')).toBe(3)
  })

  test('leaves its neighbours as they are, in their order', async () => {
    const [first] = await write([event('a', 1)])
    const ids = await write([event(undefined, 2), event('a', 3), event('b', 4), event(undefined, 5)])
    expect(ids[1]).toBe(first)
    expect(new Set(ids).size).toBe(4)
    expect(await written()).toEqual(
      [first, ids[0], ids[2], ids[3]].map((id, index) => ({ id, payload: `{"orderId":${[1, 2, 4, 5][index]}}` })),
    )
  })

  test('may be written earlier in the same transaction, or beside it', async () => {
    const ids = await outbox.transaction(async (tx) => {
      const beside = await tx.writeEvents([event('a', 1), event('a', 2)])
      await insertOrder(tx, 1)
      return [...beside, ...(await tx.writeEvents([event('a', 3)]))]
    })
    expect(new Set(ids).size).toBe(1)
    expect(await written()).toEqual([{ id: ids[0], payload: '{"orderId":1}' }])
  })

  test('follows what the transaction had written before, which is inserted with it', async () => {
    const ids = await outbox.transaction(async (tx) => {
      const before = await tx.writeEvents([{ ...event(undefined, 1), orderingKey: 'k' }])
      const keyed = await tx.writeEvents([{ ...event('a', 2), orderingKey: 'k' }])
      const after = await tx.writeEvents([{ ...event(undefined, 3), orderingKey: 'k' }])
      return [...before, ...keyed, ...after]
    })
    expect((await written()).map(({ id }) => id)).toEqual(ids)
  })

  test('is found in a transaction that another client began', async () => {
    const [first] = await write([event('a', 1)])
    const { resourceArn, secretArn, client } = service
    const { transactionId = '' } = await client.send(
      new BeginTransactionCommand({ resourceArn, secretArn, database: service.server.database }),
    )
    const ids = await outbox
      .writeEvents({ transactionId }, [event('b', 2), event('a', 3)])
      .finally(() => client.send(new CommitTransactionCommand({ resourceArn, secretArn, transactionId })))
    expect(ids).toEqual([expect.any(String), first])
    expect((await written()).map(({ payload }) => payload)).toEqual(['{"orderId":1}', '{"orderId":2}'])
  })

  test('is written after all if the event that has it is deleted at that moment', async () => {
    await write([event('a', 1)])
    service.server.requests.length = 0
    service.server.inject({ operation: 'Execute', match: 'idempotency_key = ANY', fault: { kind: 'latency', ms: 300 } })
    const again = write([event('a', 2)])
    await expect
      .poll(() => service.server.requests.some(({ sql }) => sql?.includes('idempotency_key = ANY') === true), { interval: 5 })
      .toBe(true)
    await service.server.db.query('DELETE FROM outbox_delivery')
    await service.server.db.query('DELETE FROM outbox')
    expect(await written()).toEqual([])
    expect([(await again)[0]]).toEqual((await written()).map(({ id }) => id))
    expect((await written())[0]?.payload).toBe('{"orderId":2}')
  })
})

describe('Two writers of one idempotency key at once', () => {
  const race = async (firstEnds: (id: string | undefined) => unknown) => {
    let finish = (): void => undefined
    let inserted = (): void => undefined
    const mayEnd = new Promise<void>((resolve) => (finish = resolve))
    const isThere = new Promise<void>((resolve) => (inserted = resolve))
    const first = outbox.transaction(async (tx) => {
      await insertOrder(tx, 1)
      const [id] = await tx.writeEvents([event('a', 1)])
      inserted()
      await mayEnd
      return firstEnds(id)
    })
    await isThere
    const second = write([event('a', 2)], 2)
    await expect.poll(waiting, { timeout: 10_000 }).toBe(1)
    finish()
    return Promise.allSettled([first, second])
  }

  test('wait for one another: the second answers the id of the first, once that is committed', async () => {
    const [first, second] = await race((id) => id)
    expect(first.status).toBe('fulfilled')
    expect(second).toEqual({ status: 'fulfilled', value: [(first as PromiseFulfilledResult<unknown>).value] })
    expect((await written()).map(({ payload }) => payload)).toEqual(['{"orderId":1}'])
    expect(await orders()).toEqual([1, 2])
  })

  test('wait for one another: the second writes its own, if the first is rolled back', async () => {
    const [first, second] = await race(() => {
      throw new Error('out of stock')
    })
    expect(first).toMatchObject({ status: 'rejected', reason: { message: 'out of stock' } })
    const [only] = await written()
    expect(only?.payload).toBe('{"orderId":2}')
    expect(second).toEqual({ status: 'fulfilled', value: [only?.id] })
    expect(await orders()).toEqual([2])
  })

  test('and many more, in any order of several keys, leave one event for each key', async () => {
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, id) =>
        outbox.transaction(
          async (tx) => {
            await insertOrder(tx, id)
            return tx.writeEvents(id % 2 === 0 ? [event('a', id), event('b', id)] : [event('b', id), event('a', id)])
          },
          { maxAttempts: 10 },
        ),
      ),
    )
    expect(new Set(answers.map((ids, id) => (id % 2 === 0 ? ids : [...ids].reverse()).join())).size).toBe(1)
    expect(await written()).toHaveLength(2)
    expect(await orders()).toHaveLength(24)
  })
})

describe('A write that nobody awaits', () => {
  test('is in the commit all the same', async () => {
    await outbox.transaction((tx) => {
      void tx.writeEvents([event('a')])
      void tx.writeEvents([event(undefined)])
      return Promise.resolve()
    })
    expect(await written()).toHaveLength(2)
  })

  test('fails the transaction if it fails', async () => {
    const large = { eventType: 'Large', payload: { text: 'x'.repeat(900_000) } }
    const attempt = outbox.transaction(async (tx) => {
      await insertOrder(tx, 1)
      void tx.writeEvents([large, large, large, large, { ...large, idempotencyKey: 'a' }])
    })
    await expect(attempt).rejects.toThrow(/^the 5 events of the transaction make a request of/)
    expect([await written(), await orders()]).toEqual([[], []])
  })

  test('fails the transaction if its failure is ignored', async () => {
    const large = { eventType: 'Large', payload: { text: 'x'.repeat(900_000) } }
    const attempt = outbox.transaction(async (tx) => {
      await tx.writeEvents([large, large, large, large, { ...large, idempotencyKey: 'a' }]).catch(() => undefined)
      await insertOrder(tx, 1)
    })
    await expect(attempt).rejects.toThrow(/^the 5 events of the transaction make a request of/)
    expect([await written(), await orders()]).toEqual([[], []])
  })
})

describe('An insert that an SDK sends twice without telling', () => {
  test('leaves each event once, with the ids that were answered', async () => {
    const client = service.client
    const twice = {
      name: 'twice',
      step: 'finalizeRequest',
      priority: 'low',
    } as const
    client.middlewareStack.add(
      (next, context) => async (args) => {
        const isInsert = JSON.stringify((args.input as { sql?: string }).sql ?? '').includes('INSERT INTO')
        if (context.commandName === 'ExecuteStatementCommand' && isInsert) await next(args)
        return next(args)
      },
      twice,
    )
    try {
      const ids = await outbox.transaction((tx) => tx.writeEvents([event(undefined, 1), event('a', 2), event('a', 3)]))
      expect(ids[1]).toBe(ids[2])
      expect((await written()).map(({ id }) => id)).toEqual(ids.slice(0, 2))
      expect(service.server.requests.filter(({ sql }) => sql?.includes('INSERT INTO') === true)).toHaveLength(2)
    } finally {
      client.middlewareStack.remove(twice.name)
    }
  })
})

test('The look at taken keys uses their index, and the insert needs no more than the role of a writer', async () => {
  const session = await service.server.db.connect()
  await session.query('BEGIN')
  await session.query('SET LOCAL ROLE outbox_writer')
  const { sql } = eventsByIdempotencyKeyStatement(['a'], 'public')
  const { rows } = await session.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql.replace(':keys', '\'["a"]\'')}`)
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(
    /Index (Only )?Scan using outbox_idempotency_key|Bitmap Index Scan on outbox_idempotency_key/,
  )
  await session.query('ROLLBACK')
  expect(insertEventsStatement([], 'public').sql).toContain('ON CONFLICT DO NOTHING')
})
