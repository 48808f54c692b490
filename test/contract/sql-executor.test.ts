import type { RDSDataClient } from '@aws-sdk/client-rds-data'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { deadlineAfter } from '../../src/core/deadline.js'
import type { SqlParameter, SqlStatement } from '../../src/core/ports.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase, type DataApiDatabase } from '../../src/data-api/database.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { startTestDataApi, type TestDataApi } from '../support/data-api.js'

let server: TestDataApi
let client: RDSDataClient
let database: DataApiDatabase

beforeAll(async () => {
  server = await startTestDataApi({ limits: { statementTimeoutMs: 2_000, transactionIdleMs: 2_000 } })
  client = createRdsDataClient(server.clientConfig)
  database = databaseWith({})
  await server.db.query('CREATE TABLE ledger (id bigint PRIMARY KEY, note text)')
})
afterEach(async () => {
  server.clearFaults()
  server.requests.length = 0
  await server.db.query('TRUNCATE ledger')
})
afterAll(() => client.destroy())

const databaseWith = (options: { resourceArn?: string; secretArn?: string; database?: string }): DataApiDatabase =>
  createDataApiDatabase({
    client,
    resourceArn: server.resourceArn,
    secretArn: server.secretArn,
    database: server.database,
    ...options,
  })

const read = (sql: string, parameters?: Readonly<Record<string, SqlParameter>>): SqlStatement => ({
  sql,
  parameters,
  repeatable: true,
})
const write = (id: number): SqlStatement => ({
  sql: 'INSERT INTO ledger (id) VALUES (:id)',
  parameters: { id },
  repeatable: false,
})
const soon = () => ({ deadline: deadlineAfter(systemClock, 3_000) })
const ids = async () => (await server.db.query<{ id: string }>('SELECT id FROM ledger ORDER BY id')).map((row) => Number(row.id))

describe('Values come back as the port says', () => {
  test('int2 and int4 as number, int8 as bigint, all else as string, boolean or null', async () => {
    const { rows } = await database.execute(
      read(`SELECT CAST(1 AS smallint) AS small, 2 AS whole, CAST(9223372036854775807 AS bigint) AS big, 'x' AS word, true AS yes, CAST(NULL AS text) AS none,
        CAST(1.5 AS numeric) AS price, CAST('{"a": 12345678901234567890}' AS json) AS doc, CAST(1.5 AS float8) AS real`),
    )
    expect(rows).toEqual([
      {
        small: 1,
        whole: 2,
        big: 9_223_372_036_854_775_807n,
        word: 'x',
        yes: true,
        none: null,
        price: '1.5',
        doc: '{"a": 12345678901234567890}',
        real: 1.5,
      },
    ])
  })

  test('any 64-bit integer, to its last digit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), async (value) => {
        const { rows } = await database.execute(read('SELECT CAST(:value AS bigint) AS value', { value }))
        expect(rows).toEqual([{ value }])
      }),
      { numRuns: 40, examples: [[2n ** 63n - 1n], [-(2n ** 63n)], [9_007_199_254_740_993n], [1_234_567_890_123_456_789n], [0n]] },
    )
  })

  test('any text, whatever characters it has', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '')),
        async (text) => {
          const { rows } = await database.execute(
            read('SELECT CAST(:text AS text) AS text, CAST(:none AS text) AS none', { text, none: null }),
          )
          expect(rows).toEqual([{ text, none: null }])
        },
      ),
      { numRuns: 40, examples: [['it\'s :a colon \\ "quoted"'], ['\u{10ffff}\ufffe\u2028']] },
    )
  })

  test('an identity column is a number of its own size too', async () => {
    await server.db.query('CREATE TABLE counters (small serial, big bigserial)')
    const { rows } = await database.execute(read('INSERT INTO counters DEFAULT VALUES RETURNING small, big'))
    expect(rows).toEqual([{ small: 1, big: 1n }])
  })
})

describe('A statement', () => {
  test('says how many rows it changed', async () => {
    await database.execute(write(1))
    await database.execute(write(2))
    expect(await database.execute(read(`UPDATE ledger SET note = 'x'`))).toMatchObject({
      updatedRows: 2,
      rows: [],
      repeated: false,
    })
    expect(await database.execute(read('SELECT * FROM ledger WHERE false'))).toMatchObject({ updatedRows: 0, rows: [] })
  })

  test.each<[string, string, string]>([
    ['23505', 'permanent', 'INSERT INTO ledger (id) VALUES (1), (1)'],
    ['42P01', 'permanent', 'SELECT * FROM nowhere'],
    ['22P02', 'permanent', `SELECT CAST('s3cret' AS uuid)`],
    ['42601', 'permanent', 'SELEC 1'],
  ])('that fails with %s is %s, on one line that carries no value', async (sqlState, kind, sql) => {
    const error = await database.execute(read(sql)).catch((thrown: unknown) => thrown as Error)
    expect(error).toMatchObject({ code: 'Sql', kind, sqlState })
    expect((error as Error).message).toMatch(new RegExp(`^DatabaseErrorException ${sqlState}: [^\\n]+$`))
    expect((error as Error).message).not.toContain('s3cret')
  })

  test('of several statements is refused as permanent', async () => {
    await expect(database.execute(read('SELECT 1; SELECT 2'))).rejects.toMatchObject({
      kind: 'permanent',
      errorName: 'ValidationException',
    })
  })

  test('whose answer is too large is oversize', async () => {
    await expect(database.execute(read(`SELECT repeat('x', 70000) AS x`))).rejects.toMatchObject({ kind: 'oversize' })
    await expect(database.execute(read(`SELECT repeat('x', 60000) AS x FROM generate_series(1, 30)`))).rejects.toMatchObject({
      kind: 'oversize',
    })
  })

  test('that runs too long is ambiguous, and is not repeated unless it may be', async () => {
    await expect(database.execute({ sql: 'SELECT CAST(pg_sleep(5) AS text)', repeatable: false })).rejects.toMatchObject({
      kind: 'ambiguous',
      errorName: 'StatementTimeoutException',
    })
    expect(server.requests).toHaveLength(1)
  })

  test('that waits for a lock too long was rolled back, and runs once the lock is free', async () => {
    await server.db.query(
      `CREATE FUNCTION insert_or_55p03() RETURNS void LANGUAGE sql SET lock_timeout = '50ms' AS 'INSERT INTO ledger (id) VALUES (1)'`,
    )
    const blocker = await server.db.connect()
    await blocker.query('BEGIN')
    await blocker.query('LOCK TABLE ledger')
    try {
      const written = database.execute({ sql: 'SELECT CAST(insert_or_55p03() AS text) AS written', repeatable: false })
      await expect.poll(() => server.requests.length).toBeGreaterThan(2)
      await blocker.query('COMMIT')
      expect(await written).toMatchObject({ repeated: false })
    } finally {
      await blocker.end()
    }
    expect(await ids()).toEqual([1])
  })
})

describe('A lost reply', () => {
  test('leaves a repeatable statement repeated', async () => {
    server.inject({ operation: 'Execute', fault: { kind: 'drop-reply' } })
    expect(await database.execute(read('INSERT INTO ledger (id) VALUES (1) ON CONFLICT DO NOTHING'))).toMatchObject({
      updatedRows: 0,
      repeated: true,
    })
    expect(await ids()).toEqual([1])
  })

  test('leaves another statement ambiguous, and sent once', async () => {
    server.inject({ operation: 'Execute', fault: { kind: 'drop-reply' } })
    await expect(database.execute(write(1))).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(server.requests).toHaveLength(1)
    expect(await ids()).toEqual([1])
  })

  test('of begin only leaves a transaction that nobody uses', async () => {
    server.inject({ operation: 'BeginTransaction', fault: { kind: 'drop-reply' } })
    const tx = await database.begin()
    await tx.execute(write(1))
    await tx.commit()
    expect(await ids()).toEqual([1])
    await expect.poll(() => server.dataApi.openTransactions().length, { timeout: 5_000 }).toBe(0)
  })

  test('inside a transaction loses it, and nothing is left', async () => {
    server.inject({ operation: 'Execute', fault: { kind: 'drop-reply' } })
    const tx = await database.begin()
    await expect(tx.execute(write(1))).rejects.toMatchObject({ kind: 'transaction-lost' })
    await tx.rollback()
    expect(await ids()).toEqual([])
    expect(server.dataApi.openTransactions()).toEqual([])
  })

  test('of a commit is ambiguous: it is there, and the second one finds nothing', async () => {
    server.inject({ operation: 'CommitTransaction', fault: { kind: 'drop-reply' } })
    const tx = await database.begin()
    await tx.execute(write(1))
    await expect(tx.commit()).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(await tx.end()).toBe('gone')
    expect(await ids()).toEqual([1])
  })

  test('of a commit that never arrived is mended by the second one', async () => {
    server.inject({ operation: 'CommitTransaction', fault: { kind: 'reset' } })
    const tx = await database.begin()
    await tx.execute(write(1))
    await tx.commit()
    expect(await ids()).toEqual([1])
  })
})

describe('A transaction', () => {
  test('is seen by nobody until it commits, and is then seen whole', async () => {
    const tx = await database.begin()
    const slow = { sql: 'INSERT INTO ledger (id) SELECT 1 FROM pg_sleep(0.1)', repeatable: false }
    await Promise.all([tx.execute(slow), tx.execute(write(2)), tx.execute(write(3))])
    // had two been under way at once, the service would have refused the second
    expect(server.requests.map((request) => request.operation)).toEqual(['BeginTransaction', 'Execute', 'Execute', 'Execute'])
    expect(await ids()).toEqual([])
    await tx.commit()
    expect(await ids()).toEqual([1, 2, 3])
  })

  test('leaves nothing when rolled back', async () => {
    const tx = await database.begin()
    await tx.execute(write(1))
    await tx.rollback()
    expect(await ids()).toEqual([])
  })

  test('that another client began can be joined', async () => {
    const begun = await database.begin()
    await database.joinTransaction(begun.transactionId).execute(write(1))
    await begun.commit()
    expect(await ids()).toEqual([1])
  })

  test('that is idle too long is lost', async () => {
    const tx = await database.begin()
    await tx.execute(write(1))
    await expect.poll(() => server.dataApi.openTransactions().length, { timeout: 5_000 }).toBe(0)
    await expect(tx.commit()).rejects.toMatchObject({ kind: 'transaction-lost' })
    expect(await ids()).toEqual([])
  })

  test('that deadlocks was rolled back', async () => {
    await server.db.query('INSERT INTO ledger (id) VALUES (1), (2)')
    const update = (id: number): SqlStatement => ({
      sql: `UPDATE ledger SET note = 'x' WHERE id = :id`,
      parameters: { id },
      repeatable: false,
    })
    const [one, two] = [await database.begin(), await database.begin()]
    await one.execute(update(1))
    await two.execute(update(2))
    const outcomes = await Promise.allSettled([one.execute(update(2)), two.execute(update(1))])
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(failed).toHaveLength(1)
    expect(failed[0]?.reason).toMatchObject({ kind: 'rolled-back', sqlState: '40P01' })
    await Promise.all([one.rollback(), two.rollback()])
  })
})

describe("A user's mistake ends in one line that says what to check", () => {
  test.each([
    [
      'a wrong cluster ARN',
      { resourceArn: 'arn:aws:rds:us-east-1:000000000000:cluster:other' },
      /check the cluster ARN .*cluster:other/,
    ],
    [
      'a wrong secret',
      { secretArn: 'arn:aws:secretsmanager:us-east-1:000000000000:secret:other' },
      /check that secret .*secret:other exists/,
    ],
    ['a wrong database', { database: 'nowhere' }, /check the database name "nowhere"/],
  ])('%s', async (_what, options, advice) => {
    const error = await databaseWith(options)
      .execute(read('SELECT 1'), soon())
      .catch((thrown: unknown) => thrown as Error)
    expect((error as Error).message).toMatch(advice)
    expect((error as Error).message).not.toMatch(/\n/)
  })

  test('a missing right', async () => {
    await server.db.query(`CREATE ROLE nobody_${server.database} LOGIN`)
    const nobody = databaseWith({ secretArn: server.secretFor(`nobody_${server.database}`) })
    await expect(nobody.execute(read('SELECT * FROM ledger'))).rejects.toThrow(
      /42501: permission denied for table ledger; .*grant it the outbox role/,
    )
    await server.db.query(`DROP ROLE nobody_${server.database}`)
  })

  test('a missing cast', async () => {
    await server.db.query('CREATE TABLE typed (id uuid)')
    await expect(
      database.execute({
        sql: 'INSERT INTO typed (id) VALUES (:id)',
        parameters: { id: '0197f3a2-0000-7000-8000-000000000000' },
        repeatable: false,
      }),
    ).rejects.toThrow(/42804: .*CAST\(:id AS uuid\)/)
  })
})
