import { describe, expect, it } from 'vitest'
import { DATA_API_LIMITS } from '../../src/local/data-api/limits.js'
import { startTestDataApi } from '../support/data-api.js'
import { dataApiClient, failure, parameter } from '../support/data-api-client.js'

const MIB = 1_048_576
const api = await startTestDataApi()
const { execute, value, batch, begin, commit } = dataApiClient(api)
const cautious = await startTestDataApi({ oversizeAutocommit: 'rollback' })
const quick = await startTestDataApi({ limits: { statementTimeoutMs: 300 } })
const quickClient = dataApiClient(quick)

const text = (bytes: number) => `repeat('x', ${bytes})`
const TOO_LARGE_ROW = {
  name: 'UnsupportedResultException',
  status: 400,
  message: 'Database returned more than the allowed response size limit',
}
const TOO_LARGE_ANSWER = { name: 'UnsupportedResultException', status: 400, message: 'Database response exceeded size limit' }

describe('sizes', () => {
  it('a row of 64 KB is returned, one byte more is refused', async () => {
    expect(await value(`SELECT ${text(65_536)}`)).toEqual({ stringValue: 'x'.repeat(65_536) })
    expect(await failure(execute(`SELECT ${text(65_530)}, 'seven__'`))).toMatchObject(TOO_LARGE_ROW)
  })

  it('bytes count, not characters', async () => {
    expect(await failure(execute(`SELECT repeat('ä', 32769)`))).toMatchObject(TOO_LARGE_ROW)
    expect((await value(`SELECT convert_to(${text(65_536)}, 'UTF8')`))?.blobValue).toHaveLength(65_536)
  })

  it('an answer of 1 MiB is returned, one byte more is refused', async () => {
    const { records } = await execute(`SELECT ${text(65_536)} FROM generate_series(1, 16)`)
    expect(records).toHaveLength(16)
    const rows = `SELECT ${text(65_536)} FROM generate_series(1, 16) UNION ALL SELECT 'x'`
    expect(await failure(execute(rows))).toMatchObject(TOO_LARGE_ANSWER)
  })

  it('an answer that is too large ends the transaction', async () => {
    await execute('CREATE TABLE effects (n int)')
    const transactionId = await begin()
    await execute('INSERT INTO effects VALUES (1)', { transactionId })
    expect(await failure(execute(`SELECT ${text(65_537)}`, { transactionId }))).toMatchObject(TOO_LARGE_ROW)
    expect(await failure(commit(transactionId))).toMatchObject({
      name: 'TransactionNotFoundException',
      message: `Transaction ${transactionId} is not found. One previous call resulted in a termination of your transaction.`,
    })
    expect(await value('SELECT count(*) FROM effects')).toEqual({ longValue: 0 })
  })

  it('outside of a transaction, the effect of a statement with too large an answer stays', async () => {
    expect(await failure(execute(`INSERT INTO effects VALUES (2) RETURNING ${text(65_537)}`))).toMatchObject(TOO_LARGE_ROW)
    expect(await api.db.query('SELECT n FROM effects')).toEqual([{ n: 2 }])
  })

  it('or is rolled back, if the server is told so', async () => {
    const { execute } = dataApiClient(cautious)
    await execute('CREATE TABLE effects (n int)')
    expect(await failure(execute(`INSERT INTO effects VALUES (2) RETURNING ${text(65_537)}`))).toMatchObject(TOO_LARGE_ROW)
    await execute('INSERT INTO effects VALUES (3)')
    expect(await cautious.db.query('SELECT n FROM effects')).toEqual([{ n: 3 }])
  })

  it('a request of nearly 4 MiB is taken, a larger one is refused and has no effect', async () => {
    const parameters = [parameter('p', { stringValue: 'x'.repeat(4 * MIB - 2_000) })]
    await execute('INSERT INTO effects SELECT length(:p)', { parameters })
    const larger = [parameter('p', { stringValue: 'x'.repeat(4 * MIB) })]
    const refused = await failure(execute('INSERT INTO effects SELECT length(:p)', { parameters: larger }))
    expect(refused).toMatchObject({ name: 'RequestEntityTooLargeException', status: 413 })
    expect(await value('SELECT count(*) FROM effects WHERE n > 1000')).toEqual({ longValue: 1 })
  })

  it('SQL of 65,536 characters is taken, a longer one is refused', async () => {
    const sql = (length: number) => `SELECT 1 --${'x'.repeat(length - 11)}`
    expect(await value(sql(65_536))).toEqual({ longValue: 1 })
    const refusal = { name: 'ValidationException', status: 400, message: expect.stringContaining('65536') as string }
    expect(await failure(execute(sql(65_537)))).toMatchObject(refusal)
    expect(await failure(batch(sql(65_537)))).toMatchObject(refusal)
  })

  it('parameters do not count as SQL', async () => {
    const parameters = [parameter('p', { stringValue: 'x'.repeat(100_000) })]
    expect(await value('SELECT length(:p)', { parameters })).toEqual({ longValue: 100_000 })
  })
})

describe('statement timeout', () => {
  const TIMEOUT = { name: 'StatementTimeoutException', status: 400, dbConnectionId: expect.any(Number) as number }
  const SLOW = 'SELECT pg_sleep(60)::text'
  const running = () =>
    quick.db.query(
      `SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()`,
    )

  it('is 45 s, as on AWS, unless told otherwise', () => {
    expect(DATA_API_LIMITS).toMatchObject({ statementTimeoutMs: 45_000, transactionIdleMs: 180_000 })
  })

  it('cancels the statement, and names its connection', async () => {
    expect(await failure(quickClient.execute(SLOW))).toMatchObject(TIMEOUT)
    await expect.poll(running).toEqual([])
  })

  it('rolls back what the statement did', async () => {
    await quickClient.execute('CREATE TABLE slow (n int)')
    await failure(quickClient.execute('INSERT INTO slow SELECT 1 FROM pg_sleep(60)'))
    expect(await quickClient.value('SELECT count(*) FROM slow')).toEqual({ longValue: 0 })
  })

  it('lets it go on if asked, and only tells the caller', async () => {
    const sql = 'INSERT INTO slow SELECT 2 FROM pg_sleep(0.8)'
    expect(await failure(quickClient.execute(sql, { continueAfterTimeout: true }))).toMatchObject(TIMEOUT)
    expect(await quick.db.query('SELECT n FROM slow')).toEqual([])
    await expect.poll(() => quick.db.query('SELECT n FROM slow'), { timeout: 5_000 }).toEqual([{ n: 2 }])
  })

  it('counts a batch as one call', async () => {
    const parameterSets = Array.from({ length: 4 }, () => [parameter('s', { doubleValue: 0.12 })])
    expect(await failure(quickClient.batch('SELECT pg_sleep(:s)', { parameterSets }))).toMatchObject(TIMEOUT)
  })

  it('ends the transaction of a cancelled statement', async () => {
    const transactionId = await quickClient.begin()
    expect(await failure(quickClient.execute(SLOW, { transactionId }))).toMatchObject(TIMEOUT)
    expect(await failure(quickClient.execute('SELECT 1', { transactionId }))).toMatchObject({
      name: 'TransactionNotFoundException',
      message: expect.stringContaining('aborted due to an error from a previous call') as string,
    })
  })

  it('leaves the transaction busy while the statement goes on, and usable after that', async () => {
    const transactionId = await quickClient.begin()
    const sql = 'INSERT INTO slow SELECT 3 FROM pg_sleep(0.8)'
    expect(await failure(quickClient.execute(sql, { transactionId, continueAfterTimeout: true }))).toMatchObject(TIMEOUT)
    expect(await failure(quickClient.commit(transactionId))).toMatchObject({ message: 'Transaction is still running a query' })
    await expect.poll(() => quick.dataApi.openTransactions().map(({ busy }) => busy), { timeout: 5_000 }).toEqual([false])
    await quickClient.commit(transactionId)
    expect(await quick.db.query('SELECT n FROM slow')).toEqual([{ n: 2 }, { n: 3 }])
  })
})
