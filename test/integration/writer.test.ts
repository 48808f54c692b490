import { BeginTransactionCommand, CommitTransactionCommand, ExecuteStatementCommand } from '@aws-sdk/client-rds-data'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDataApiDatabase, createOutbox, type NewEvent, type Outbox } from '../../src/writer/index.js'
import { startServiceDatabase, type ServiceDatabase } from '../support/outbox-data-api.js'

let service: ServiceDatabase
let outbox: Outbox

beforeAll(async () => {
  service = await startServiceDatabase({ transactionIdleMs: 3_000 })
  outbox = createOutbox({ database: service.database })
})
afterEach(async () => {
  service.server.clearFaults()
  await expect.poll(() => service.server.dataApi.openTransactions().length, { timeout: 10_000 }).toBe(0)
  await service.server.db.query('TRUNCATE outbox, outbox_delivery, orders')
  service.server.requests.length = 0
})

const insertOrder = 'INSERT INTO orders (id) VALUES (:id)'
const created = (orderId: number): NewEvent => ({ eventType: 'OrderCreated', payload: { orderId } })
const placeOrder = (id: number, events: readonly NewEvent[] = [created(id)]): Promise<readonly string[]> =>
  outbox.transaction(async (tx) => {
    await tx.execute(insertOrder, { id })
    return tx.writeEvents(events)
  })
const count = async (table: string): Promise<number> =>
  Number((await service.server.db.query<{ rows: string }>(`SELECT count(*) AS rows FROM ${table}`))[0]?.rows)
const left = async (): Promise<{ orders: number; events: number; queued: number }> => ({
  orders: await count('orders'),
  events: await count('outbox'),
  queued: await count('outbox_delivery'),
})
const sent = (): string[] =>
  service.server.requests.map(({ operation, sql }) => (sql?.includes('outbox') === true ? 'events' : operation))

describe('A transaction', () => {
  test('leaves business row and events together, the events in one statement just before the commit', async () => {
    const ids = await outbox.transaction(async (tx) => {
      const first = await tx.writeEvents([created(1)])
      await tx.execute(insertOrder, { id: 1 })
      const others = await outbox.writeEvents(tx, [created(2), created(3)])
      return [...first, ...others]
    })
    expect(await left()).toEqual({ orders: 1, events: 3, queued: 3 })
    expect(sent()).toEqual(['BeginTransaction', 'Execute', 'events', 'CommitTransaction'])
    const written = await service.server.db.query<{ id: string }>('SELECT event_id AS id FROM outbox_delivery ORDER BY seq')
    expect(written.map((row) => row.id)).toEqual(ids)
  })

  test('without events sends none', async () => {
    await outbox.transaction((tx) => tx.execute(insertOrder, { id: 1 }))
    expect(sent()).toEqual(['BeginTransaction', 'Execute', 'CommitTransaction'])
    expect(await left()).toEqual({ orders: 1, events: 0, queued: 0 })
  })

  test.each<[string, () => Promise<unknown>, RegExp]>([
    [
      'whose function throws',
      () =>
        outbox.transaction(async (tx) => {
          await tx.execute(insertOrder, { id: 1 })
          await tx.writeEvents([created(1)])
          throw new Error('out of stock')
        }),
      /^out of stock$/,
    ],
    [
      'with an event that is refused',
      () => placeOrder(1, [{ eventType: '', payload: {} }]),
      /^eventType must have 1 to 255 bytes/,
    ],
    [
      'with events that the database refuses',
      () =>
        placeOrder(1, [
          // PostgreSQL's JSON parser gives up where JSON.parse does not
          { eventType: 'Deep', payload: '['.repeat(200_000) + ']'.repeat(200_000) },
        ]),
      /54001/,
    ],
  ])('%s leaves nothing and is not tried again', async (_what, run, message) => {
    await expect(run()).rejects.toThrow(message)
    expect(service.server.dataApi.openTransactions()).toEqual([])
    expect(await left()).toEqual({ orders: 0, events: 0, queued: 0 })
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(1)
  })

  test('is closed for calls that come after its function', async () => {
    let escaped: ((events: readonly NewEvent[]) => unknown) | undefined
    await outbox.transaction((tx) => {
      escaped = (events) => tx.writeEvents(events)
      return Promise.resolve()
    })
    expect(() => escaped?.([created(1)])).toThrow(/the function given to transaction\(\) has ended/)
  })

  test('writes to the outbox of another schema', async () => {
    await expect(
      createOutbox({ database: service.database, schema: 'elsewhere' }).transaction((tx) => tx.writeEvents([created(1)])),
    ).rejects.toThrow(/42P01|3F000/)
    expect(service.server.requests.some((request) => request.sql?.includes('"elsewhere".outbox') === true)).toBe(true)
    expect(() => createOutbox({ database: service.database, schema: 'a"b' })).toThrow(
      'schema must be a plain lower-case PostgreSQL name',
    )
  })
})

describe('A transaction that is lost by chance is tried again, whole', () => {
  test('after a lost reply of a statement', async () => {
    service.server.inject({ operation: 'Execute', match: 'INSERT INTO orders', fault: { kind: 'drop-reply' } })
    await placeOrder(1)
    expect(await left()).toEqual({ orders: 1, events: 1, queued: 1 })
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(2)
  })

  test('after a lost reply of the events, which are written once', async () => {
    service.server.inject({ operation: 'Execute', match: 'outbox', fault: { kind: 'drop-reply' } })
    await placeOrder(1)
    expect(await left()).toEqual({ orders: 1, events: 1, queued: 1 })
  })

  test('even if its function makes an error of its own of the failure', async () => {
    service.server.inject({ operation: 'Execute', match: 'INSERT INTO orders', fault: { kind: 'reset' } })
    await outbox.transaction(async (tx) => {
      await tx.execute(insertOrder, { id: 1 }).catch((cause: unknown) => {
        throw new Error('order failed', { cause })
      })
    })
    expect(await left()).toMatchObject({ orders: 1 })
  })

  test('even if its function ignores the failure', async () => {
    service.server.inject({ operation: 'Execute', match: 'INSERT INTO orders', fault: { kind: 'reset' } })
    await outbox.transaction(async (tx) => {
      await tx.execute(insertOrder, { id: 1 }).catch(() => undefined)
      await tx.writeEvents([created(1)])
    })
    expect(await left()).toEqual({ orders: 1, events: 1, queued: 1 })
  })

  test('but no more often than asked', async () => {
    service.server.inject({ operation: 'Execute', match: 'INSERT INTO orders', times: 5, fault: { kind: 'reset' } })
    await expect(outbox.transaction((tx) => tx.execute(insertOrder, { id: 1 }), { maxAttempts: 1 })).rejects.toMatchObject({
      kind: 'transaction-lost',
    })
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(1)
    await expect(outbox.transaction((tx) => tx.execute(insertOrder, { id: 1 }))).rejects.toMatchObject({
      kind: 'transaction-lost',
    })
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(4)
    expect(await left()).toMatchObject({ orders: 0 })
  })

  test('after a deadlock with another one', async () => {
    await service.server.db.query('INSERT INTO orders (id) VALUES (1), (2)')
    let arrived = 0
    let meet = (): void => undefined
    const met = new Promise<void>((resolve) => (meet = resolve))
    const touch = (first: number, second: number) =>
      outbox.transaction(async (tx) => {
        await tx.writeEvents([created(first)])
        await tx.execute('UPDATE orders SET id = id WHERE id = :id', { id: first })
        if (++arrived === 2) meet()
        await met
        await tx.execute('UPDATE orders SET id = id WHERE id = :id', { id: second })
      })
    await Promise.all([touch(1, 2), touch(2, 1)])
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(3)
    expect(await left()).toEqual({ orders: 2, events: 2, queued: 2 })
  })
})

describe('A commit whose reply is lost', () => {
  test('is reported as committed if it was', async () => {
    service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'drop-reply' } })
    const [id] = await placeOrder(1)
    expect(await left()).toEqual({ orders: 1, events: 1, queued: 1 })
    expect(await service.server.db.query('SELECT id FROM outbox')).toEqual([{ id }])
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(1)
  })

  test('is committed by the second sending if the first never arrived', async () => {
    service.server.inject({ operation: 'CommitTransaction', times: 2, fault: { kind: 'reset' } })
    await placeOrder(1)
    expect(await left()).toEqual({ orders: 1, events: 1, queued: 1 })
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(1)
  })

  const impatient = () =>
    createOutbox({
      database: createDataApiDatabase({
        client: service.client,
        resourceArn: service.resourceArn,
        secretArn: service.secretArn,
        database: service.server.database,
        defaultDeadlineMs: 500,
      }),
    })

  test('is reported as failed if no sending ever arrived, and nothing is there, then or later', async () => {
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'reset' } })
    const placed = impatient().transaction(
      async (tx) => {
        await tx.execute(insertOrder, { id: 1 })
        await tx.writeEvents([created(1)])
      },
      { maxAttempts: 1 },
    )
    await expect(placed).rejects.toMatchObject({ kind: 'transaction-lost' })
    await expect(placed).rejects.toThrow(/^nothing was committed: /)
    expect(service.server.dataApi.openTransactions()).toEqual([])
    expect(await left()).toEqual({ orders: 0, events: 0, queued: 0 })
  })

  test('is committed even if no sending of it was ever answered, its events tell', async () => {
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'drop-reply' } })
    await impatient().transaction(
      async (tx) => {
        await tx.execute(insertOrder, { id: 1 })
        await tx.writeEvents([created(1)])
      },
      { maxAttempts: 1 },
    )
    expect(await left()).toEqual({ orders: 1, events: 1, queued: 1 })
  })

  test('stays ambiguous if there is no event to look up', async () => {
    service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'drop-reply' } })
    await expect(outbox.transaction((tx) => tx.execute(insertOrder, { id: 1 }))).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(sent().filter((call) => call === 'BeginTransaction')).toHaveLength(1)
  })

  test('stays ambiguous if the looking up fails too', async () => {
    service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'drop-reply' } })
    service.server.inject({
      operation: 'Execute',
      match: 'AS outcome',
      times: 100,
      fault: { kind: 'error', name: 'AccessDeniedException', status: 403 },
    })
    await expect(placeOrder(1)).rejects.toMatchObject({ kind: 'ambiguous' })
  })
})

describe("A transaction of the caller's own client", () => {
  test('gets its events at once, in one statement, and commits when the caller does', async () => {
    const arns = { resourceArn: service.resourceArn, secretArn: service.secretArn }
    const { transactionId = '' } = await service.client.send(
      new BeginTransactionCommand({ ...arns, database: service.server.database }),
    )
    await service.client.send(new ExecuteStatementCommand({ ...arns, transactionId, sql: 'INSERT INTO orders (id) VALUES (1)' }))
    const ids = await outbox.writeEvents({ transactionId }, [created(1), created(2)])
    expect(ids).toHaveLength(2)
    expect(await left()).toEqual({ orders: 0, events: 0, queued: 0 })
    await service.client.send(new CommitTransactionCommand({ ...arns, transactionId }))
    expect(await left()).toEqual({ orders: 1, events: 2, queued: 2 })
    expect(sent()).toEqual(['BeginTransaction', 'Execute', 'events', 'CommitTransaction'])
  })

  test('that is gone is reported as lost', async () => {
    await expect(outbox.writeEvents({ transactionId: 'gone' }, [created(1)])).rejects.toMatchObject({ kind: 'transaction-lost' })
  })
})

describe('Many writers at once', () => {
  test('leave for every committed order exactly its event, and for others nothing, whatever is lost on the way', async () => {
    for (const operation of ['Execute', 'CommitTransaction', 'BeginTransaction'] as const) {
      service.server.inject({ operation, times: 8, fault: { kind: 'drop-reply' } })
      service.server.inject({ operation, times: 8, fault: { kind: 'reset' } })
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, (_, id) =>
        outbox.transaction(
          async (tx) => {
            await tx.execute(insertOrder, { id })
            await tx.writeEvents([{ ...created(id), orderingKey: `customer-${id % 3}` }])
            if (id % 5 === 0) throw new Error('out of stock')
          },
          { maxAttempts: 10 },
        ),
      ),
    )
    expect(outcomes.flatMap((outcome, id) => (outcome.status === 'fulfilled' ? [id] : []))).toEqual(
      Array.from({ length: 60 }, (_, id) => id).filter((id) => id % 5 !== 0),
    )
    const rows = await service.server.db.query<{ id: string; events: string }>(
      `SELECT o.id, count(e.id) AS events FROM orders o LEFT JOIN outbox e ON CAST(CAST(e.payload AS json) ->> 'orderId' AS bigint) = o.id GROUP BY o.id ORDER BY o.id`,
    )
    expect(rows).toHaveLength(48)
    expect(rows.every((row) => row.events === '1')).toBe(true)
    expect(await left()).toEqual({ orders: 48, events: 48, queued: 48 })
  })
})
