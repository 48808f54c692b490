import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDataApiDatabase, createOutbox, type Outbox } from '../../../src/writer/index.js'
import type { ServiceResponse } from '../../../src/local/service.js'
import type { FaultRule, InjectedFault } from '../../support/data-api.js'
import { startServiceDatabase, type ServiceDatabase } from '../../support/outbox-data-api.js'

let service: ServiceDatabase
let outbox: Outbox

beforeAll(async () => {
  service = await startServiceDatabase({ transactionIdleMs: 2_000, statementTimeoutMs: 3_000 })
  outbox = createOutbox({ database: service.database })
})
afterEach(async () => {
  service.server.clearFaults()
  await expect.poll(() => service.server.dataApi.openTransactions().length, { timeout: 30_000 }).toBe(0)
  await service.server.db.query('TRUNCATE outbox, outbox_delivery, orders')
  service.server.requests.length = 0
})

const placeOrder = (to: Outbox = outbox, pause: () => Promise<unknown> = () => Promise.resolve()) =>
  to.transaction(async (tx) => {
    await tx.execute('INSERT INTO orders (id) VALUES (:id)', { id: 1 })
    await pause()
    return tx.writeEvents([
      { eventType: 'OrderCreated', orderingKey: 'order-1', payload: { orderId: 1 } },
      { eventType: 'OrderPaid', orderingKey: 'order-1', payload: { orderId: 1 } },
    ])
  })
const begun = () => service.server.requests.filter(({ operation }) => operation === 'BeginTransaction').length
/** Orders, events by the ids that the writer answered, queue rows in their order. */
const expectOnce = async (ids: readonly string[]) => {
  expect(await service.server.db.query('SELECT id::int FROM orders')).toEqual([{ id: 1 }])
  expect(await service.server.db.query('SELECT id FROM outbox ORDER BY id')).toEqual([...ids].sort().map((id) => ({ id })))
  expect(await service.server.db.query('SELECT event_id FROM outbox_delivery ORDER BY seq')).toEqual(
    ids.map((id) => ({ event_id: id })),
  )
}

const timedOut = { name: 'StatementTimeoutException', message: 'Request timed out. dbConnectionId: 1' }
const unavailable = { name: 'DatabaseUnavailableException', status: 504, message: '' }
const broken = {
  name: 'DatabaseErrorException',
  message: 'ERROR: terminating connection due to administrator command; Error code: 0; SQLState: 57P01',
}
const failures: readonly (readonly [what: string, fault: InjectedFault])[] = [
  ['has its effect, and its reply is lost', { kind: 'drop-reply' }],
  ['never arrives', { kind: 'reset' }],
  ['has its effect and is answered 504', { kind: 'error-after', ...unavailable }],
  ['has no effect and is answered 504', { kind: 'error', ...unavailable }],
  ['has its effect and is answered as a statement timeout', { kind: 'error-after', ...timedOut }],
  ['is cancelled by the statement timeout', { kind: 'error', ...timedOut }],
  ['has its effect before a failover breaks its connection', { kind: 'error-after', ...broken }],
  ['is broken off by a failover', { kind: 'error', ...broken }],
]
const points: readonly (readonly [name: string, rule: Omit<FaultRule, 'fault'>])[] = [
  ['the begin of a transaction', { operation: 'BeginTransaction' }],
  ['a statement of the service', { operation: 'Execute', match: 'INSERT INTO orders' }],
  ['the insert of the events', { operation: 'Execute', match: '.outbox (id' }],
  ['the commit', { operation: 'CommitTransaction' }],
]

describe.each(points)('%s that', (_, point) => {
  test.each(failures)('%s leaves the order and its events once, with the ids that are answered', async (__, fault) => {
    service.server.inject({ ...point, fault })
    const used = service.server.requests
    await expectOnce(await placeOrder())
    expect(
      used.filter(({ operation, sql = '' }) => operation === point.operation && sql.includes(String(point.match ?? ''))).length,
    ).toBeGreaterThan(1)
  })
})

test('A commit that is sent twice without telling is known by what it wrote: it is neither called lost nor repeated', async () => {
  service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'twice' } })
  const ids = await placeOrder()
  expect(begun()).toBe(1)
  await expectOnce(ids)
})

test('An insert and a commit that are both sent twice without telling leave each event once, with the ids that are answered', async () => {
  service.server.inject({ match: 'INSERT INTO "public".outbox', fault: { kind: 'twice' } })
  service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'twice' } })
  const ids = await placeOrder()
  expect(begun()).toBe(1)
  await expectOnce(ids)
})

test('A commit without an event that is sent twice without telling is ambiguous: it is not repeated', async () => {
  service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'twice' } })
  const placed = outbox.transaction((tx) => tx.execute('INSERT INTO orders (id) VALUES (:id)', { id: 1 }))
  await expect(placed).rejects.toMatchObject({ kind: 'ambiguous' })
  expect(begun()).toBe(1)
})

test('A begin that nobody answers is no commit in doubt', async () => {
  const { client, resourceArn, secretArn, server } = service
  const impatient = createOutbox({
    database: createDataApiDatabase({ client, resourceArn, secretArn, database: server.database, defaultDeadlineMs: 500 }),
  })
  service.server.inject({ operation: 'BeginTransaction', times: 1000, fault: { kind: 'reset' } })
  await expect(placeOrder(impatient)).rejects.toMatchObject({ kind: 'transaction-lost' })
})

test('A commit that is sent twice without telling, and cannot be looked up, is ambiguous: it is not repeated', async () => {
  service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'twice' } })
  const fault = { kind: 'error', name: 'AccessDeniedException', status: 403 } as const
  service.server.inject({ operation: 'Execute', match: 'AS outcome', times: 100, fault })
  await expect(placeOrder()).rejects.toMatchObject({ kind: 'ambiguous' })
  expect(begun()).toBe(1)
})

describe('A call that arrives late', () => {
  const heldBack = (rule: Omit<FaultRule, 'fault'>) => {
    let arrive = (): void => undefined
    let heard: (answer: ServiceResponse) => void = () => undefined
    const until = new Promise<void>((resolve) => (arrive = resolve))
    const answer = new Promise<ServiceResponse>((resolve) => (heard = resolve))
    service.server.inject({ ...rule, fault: { kind: 'late', until, arrived: heard } })
    return () => {
      arrive()
      return answer
    }
  }

  test.each(points.slice(1))(
    '%s, after its transaction was given up and its work is committed by another, changes nothing',
    async (_, point) => {
      const arrives = heldBack(point)
      const ids = await placeOrder()
      const { status, headers } = await arrives()
      expect([status, headers['x-amzn-errortype']]).toEqual([404, 'TransactionNotFoundException'])
      await expectOnce(ids)
    },
  )

  test('a commit, after nothing was answered to any of its sendings and the transaction was rolled back, changes nothing', async () => {
    const { client, resourceArn, secretArn, server } = service
    const impatient = createOutbox({
      database: createDataApiDatabase({ client, resourceArn, secretArn, database: server.database, defaultDeadlineMs: 500 }),
    })
    const arrives = heldBack({ operation: 'CommitTransaction' })
    service.server.inject({ operation: 'CommitTransaction', times: 1000, fault: { kind: 'reset' } })
    const placed = placeOrder(impatient)
    // given up after 500 ms, rolled back, begun again
    await expect.poll(() => begun(), { timeout: 30_000 }).toBe(2)
    service.server.clearFaults()
    const ids = await placed
    expect((await arrives()).status).toBe(404)
    await expectOnce(ids)
  })
})

describe('A transaction that the database has ended', () => {
  test('because nobody used it for too long is begun again, whole', async () => {
    let waits = 0
    const ids = await placeOrder(outbox, async () => {
      if (++waits > 1) return
      await expect.poll(() => service.server.dataApi.openTransactions().length, { timeout: 30_000 }).toBe(0)
    })
    expect(waits).toBe(2)
    await expectOnce(ids)
  })

  test('because a statement of it ran into the statement timeout is begun again, whole', async () => {
    let tries = 0
    const ids = await outbox.transaction(async (tx) => {
      await tx.execute('INSERT INTO orders (id) VALUES (:id)', { id: 1 })
      if (++tries === 1) await tx.execute('SELECT CAST(pg_sleep(20) AS text)')
      return tx.writeEvents([{ eventType: 'OrderCreated', payload: {} }])
    })
    expect(tries).toBe(2)
    await expectOnce(ids)
  })

  test('because an answer was too large is not tried again, and leaves nothing', async () => {
    const placed = outbox.transaction(async (tx) => {
      await tx.writeEvents([{ eventType: 'OrderCreated', payload: {}, idempotencyKey: 'a' }])
      await tx.execute(`SELECT repeat('x', 70000)`)
    })
    await expect(placed).rejects.toMatchObject({ code: 'Sql', kind: 'oversize' })
    expect(await service.server.db.query('SELECT id FROM outbox')).toEqual([])
    expect(begun()).toBe(1)
  })

  test('because its connection was cut is begun again, whole', async () => {
    let tries = 0
    const ids = await placeOrder(outbox, async () => {
      if (++tries > 1) return
      await service.server.db.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`,
      )
    })
    expect(tries).toBe(2)
    await expectOnce(ids)
  })
})
