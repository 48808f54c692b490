import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  createDataApiDatabase,
  createInbox,
  handleOnce,
  type DataApiDatabase,
  type Inbox,
  type InboxTransaction,
} from '../../src/inbox/index.js'
import { inboxSql } from '../../src/store/postgres/schema-sql.js'
import { createOutbox } from '../../src/writer/index.js'
import { startServiceDatabase, type ServiceDatabase } from '../support/outbox-data-api.js'

let service: ServiceDatabase
let database: DataApiDatabase
let inbox: Inbox

beforeAll(async () => {
  service = await startServiceDatabase()
  database = service.database
  inbox = createInbox({ database })
  await service.server.db.query(inboxSql({ schema: 'public' }))
  await service.server.db.query(`GRANT SELECT, INSERT ON outbox_inbox TO service_${service.server.database}`)
})
afterEach(async () => {
  service.server.clearFaults()
  await expect.poll(() => service.server.dataApi.openTransactions().length, { timeout: 5_000 }).toBe(0)
  await service.server.db.query('TRUNCATE outbox_inbox, outbox, outbox_delivery, orders')
  service.server.requests.length = 0
})

const effect = (tx: InboxTransaction) =>
  tx.execute({ sql: 'INSERT INTO orders (id) SELECT COALESCE(max(id), 0) + 1 FROM orders', repeatable: false })
const effects = async (): Promise<number> => (await service.server.db.query('SELECT id FROM orders')).length
const handledIds = async (): Promise<string[]> =>
  (await service.server.db.query<{ event_id: string }>('SELECT event_id FROM outbox_inbox ORDER BY 1')).map((row) => row.event_id)

describe('An event', () => {
  test('has its effect once, however often it comes', async () => {
    expect(await inbox.handleOnce('e1', (tx) => effect(tx).then(() => 'done'))).toEqual({ handled: true, value: 'done' })
    expect(await inbox.handleOnce('e1', effect)).toEqual({ handled: false })
    expect(await inbox.handleOnce('e2', effect)).toMatchObject({ handled: true })
    expect(await effects()).toBe(2)
    expect(await handledIds()).toEqual(['e1', 'e2'])
  })

  test('that comes twice in one transaction has its effect once', async () => {
    await database.transaction(async (tx) => {
      expect(await handleOnce(tx, 'e1', effect)).toMatchObject({ handled: true })
      expect(await handleOnce(tx, 'e1', effect)).toEqual({ handled: false })
      expect(await handleOnce(tx, 'e2', effect)).toMatchObject({ handled: true })
      expect(await handleOnce(tx, 'e1', effect)).toEqual({ handled: false })
    })
    expect(await effects()).toBe(2)
  })

  test('whose effect fails leaves nothing and comes again', async () => {
    const failing = inbox.handleOnce('e1', async (tx) => {
      await effect(tx)
      throw new Error('out of stock')
    })
    await expect(failing).rejects.toThrow('out of stock')
    expect([await effects(), await handledIds()]).toEqual([0, []])
    expect(await inbox.handleOnce('e1', effect)).toMatchObject({ handled: true })
  })

  test.each<[string, unknown]>([
    ['an empty id', ''],
    ['an endless id', 'x'.repeat(1_025)],
    ['no id', undefined],
  ])('with %s is refused', async (_what, id) => {
    await expect(inbox.handleOnce(id as string, effect)).rejects.toMatchObject({ code: 'InvalidEvent', field: 'eventId' })
  })
})

describe('Consumers that get the same event at once', () => {
  test('have one effect between them', async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => inbox.handleOnce('e1', effect)))
    expect(outcomes.filter((outcome) => outcome.handled)).toHaveLength(1)
    expect(await effects()).toBe(1)
  })

  test('wait for the first: if it commits, the second does nothing', async () => {
    const first = await database.begin()
    expect(await handleOnce(first, 'e1', effect)).toMatchObject({ handled: true })
    const second = inbox.handleOnce('e1', effect)
    await isWaiting()
    await first.commit()
    expect(await second).toEqual({ handled: false })
    expect(await effects()).toBe(1)
  })

  test('wait for the first: if it rolls back, the second takes over', async () => {
    const first = await database.begin()
    await handleOnce(first, 'e1', effect)
    const second = inbox.handleOnce('e1', effect)
    await isWaiting()
    await first.rollback()
    expect(await second).toMatchObject({ handled: true })
    expect(await effects()).toBe(1)
  })

  const isWaiting = () =>
    expect
      .poll(
        () =>
          service.server.db.query(
            `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          ),
        { timeout: 5_000 },
      )
      .toHaveLength(1)
})

describe('A lost reply', () => {
  test.each(['drop-reply', 'reset'] as const)('of any call (%s) neither doubles the effect nor loses it', async (kind) => {
    for (const [index, fault] of [
      { match: 'outbox_inbox' },
      { match: 'INSERT INTO orders' },
      { operation: 'CommitTransaction' as const },
    ].entries()) {
      service.server.inject({ ...fault, fault: { kind } })
      expect(await inbox.handleOnce(`e${index}`, effect)).toMatchObject({ handled: true })
      expect(await effects()).toBe(index + 1)
    }
    expect(await handledIds()).toEqual(['e0', 'e1', 'e2'])
  })

  test('of a call that a proxy sends again without telling neither doubles the effect nor skips it', async () => {
    for (const [index, where] of [{ match: 'outbox_inbox' }, { operation: 'CommitTransaction' as const }].entries()) {
      service.server.inject({ ...where, fault: { kind: 'twice' } })
      expect(await inbox.handleOnce(`e${index}`, effect)).toMatchObject({ handled: true })
      expect(await inbox.handleOnce(`e${index}`, effect)).toEqual({ handled: false })
      expect(await effects()).toBe(index + 1)
    }
  })

  test('of the commit that had nothing to do is no failure', async () => {
    await inbox.handleOnce('e1', effect)
    service.server.inject({ operation: 'CommitTransaction', fault: { kind: 'drop-reply' } })
    expect(await inbox.handleOnce('e1', effect)).toEqual({ handled: false })
  })

  test('of a commit that no sending reached fails, and leaves nothing', async () => {
    service.server.inject({ operation: 'CommitTransaction', times: 100, fault: { kind: 'reset' } })
    const { client, resourceArn, secretArn } = service
    const impatient = createDataApiDatabase({
      client,
      resourceArn,
      secretArn,
      database: service.server.database,
      defaultDeadlineMs: 300,
    })
    await expect(createInbox({ database: impatient }).handleOnce('e1', effect)).rejects.toMatchObject({
      kind: 'transaction-lost',
    })
    expect([await effects(), await handledIds()]).toEqual([0, []])
  })
})

describe('Inside a transaction of the writer', () => {
  test('id, effect and new events are one', async () => {
    const outbox = createOutbox({ database })
    const consume = () =>
      outbox.transaction((tx) =>
        handleOnce(tx, 'e1', async () => {
          await effect(tx)
          await tx.writeEvents([{ eventType: 'StockReserved', payload: {} }])
        }),
      )
    expect(await consume()).toMatchObject({ handled: true })
    expect(await consume()).toEqual({ handled: false })
    expect([await effects(), (await service.server.db.query('SELECT id FROM outbox')).length]).toEqual([1, 1])
  })
})

test('A database in place of a transaction is refused: the id would stay without the effect', async () => {
  await expect(handleOnce(database as unknown as InboxTransaction, 'e1', effect)).rejects.toMatchObject({
    code: 'Configuration',
    setting: 'tx',
  })
  expect(await handledIds()).toEqual([])
})
