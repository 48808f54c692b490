import { describe, expect, it } from 'vitest'
import { startTestDataApi } from '../support/data-api.js'
import { dataApiClient, failure, parameter } from '../support/data-api-client.js'

const api = await startTestDataApi()
const { execute, value, batch, begin, commit, rollback } = dataApiClient(api)
const hasty = await startTestDataApi({ limits: { transactionIdleMs: 300 } })
const hastyClient = dataApiClient(hasty)

await execute('CREATE TABLE entries (n int PRIMARY KEY)')
const entries = async () => (await api.db.query<{ n: number }>('SELECT n FROM entries ORDER BY n')).map(({ n }) => n)
const notFound = (id: string, why: string) => ({
  name: 'TransactionNotFoundException',
  status: 404,
  message: `Transaction ${id} is not found. ${why}`,
})
const ABORTED = 'Transaction has been aborted due to an error from a previous call.'
const EXPIRED = 'Transaction may be expired.'

describe('a transaction', () => {
  it('is visible to nobody before its commit, and to all after it', async () => {
    const transactionId = await begin()
    await execute('INSERT INTO entries VALUES (1)', { transactionId })
    expect(await value('SELECT count(*) FROM entries', { transactionId })).toEqual({ longValue: 1 })
    expect(await entries()).toEqual([])
    expect(await commit(transactionId)).toBe('Transaction Committed')
    expect(await entries()).toEqual([1])
  })

  it('leaves nothing when it is rolled back', async () => {
    const transactionId = await begin()
    await execute('INSERT INTO entries VALUES (2)', { transactionId })
    expect(await rollback(transactionId)).toBe('Rollback Complete')
    expect(await entries()).toEqual([1])
  })

  it('has an id that clients must not take apart: base64, below 192 characters', async () => {
    const transactionId = await begin()
    expect(transactionId).toMatch(/^[A-Za-z\d+/]+={0,2}$/)
    expect(transactionId.length).toBeLessThan(192)
    await rollback(transactionId)
  })

  it('keeps its settings to itself', async () => {
    const transactionId = await begin()
    await execute(`SET work_mem = '5MB'`, { transactionId })
    expect(await value('SHOW work_mem', { transactionId })).toEqual({ stringValue: '5MB' })
    await commit(transactionId)
    for (let call = 0; call < 5; call++) expect(await value('SHOW work_mem')).toEqual({ stringValue: '4MB' })
  })

  it('is over after its commit', async () => {
    const transactionId = await begin()
    await commit(transactionId)
    expect(await failure(commit(transactionId))).toMatchObject(notFound(transactionId, EXPIRED))
    expect(await failure(execute('SELECT 1', { transactionId }))).toMatchObject(notFound(transactionId, EXPIRED))
  })

  it('ends with any SQL error', async () => {
    const transactionId = await begin()
    await execute('INSERT INTO entries VALUES (3)', { transactionId })
    const duplicate = await failure(execute('INSERT INTO entries VALUES (1)', { transactionId }))
    expect(duplicate.message).toBe(
      `ERROR: duplicate key value violates unique constraint "entries_pkey"\n  Detail: Key (n)=(1) already exists.; SQLState: 23505`,
    )
    expect(await failure(execute('SELECT 1', { transactionId }))).toMatchObject(notFound(transactionId, ABORTED))
    expect(await failure(commit(transactionId))).toMatchObject(notFound(transactionId, ABORTED))
    expect(await failure(rollback(transactionId))).toMatchObject(notFound(transactionId, ABORTED))
    expect(await entries()).toEqual([1])
  })

  it('survives a call that never reached the database', async () => {
    const transactionId = await begin()
    await failure(execute('SELECT :missing', { transactionId }))
    expect(await value('SELECT 1', { transactionId })).toEqual({ longValue: 1 })
    await rollback(transactionId)
  })

  it('takes one call at a time: a second one is refused at once, and does no harm', async () => {
    const transactionId = await begin()
    const blocker = await api.db.connect()
    await blocker.query('BEGIN')
    await blocker.query('LOCK TABLE entries')
    const first = execute('INSERT INTO entries VALUES (4)', { transactionId })
    await expect.poll(() => api.dataApi.openTransactions().map(({ busy }) => busy)).toEqual([true])
    const refusal = { name: 'DatabaseErrorException', status: 400, message: 'Transaction is still running a query' }
    expect(await failure(execute('SELECT 1', { transactionId }))).toMatchObject(refusal)
    expect(await failure(commit(transactionId))).toMatchObject(refusal)
    await blocker.query('ROLLBACK')
    await first
    await commit(transactionId)
    expect(await entries()).toEqual([1, 4])
  })

  it('makes a batch atomic', async () => {
    const transactionId = await begin()
    const parameterSets = [5, 1].map((n) => [parameter('n', { longValue: n })])
    const call = batch('INSERT INTO entries VALUES (:n)', { transactionId, parameterSets })
    expect((await failure(call)).message).toMatch(/SQLState: 23505$/)
    expect(await failure(commit(transactionId))).toMatchObject(notFound(transactionId, ABORTED))
    expect(await entries()).toEqual([1, 4])
  })

  it('that fails at its commit says why, and leaves nothing', async () => {
    await execute('CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)')
    const transactionId = await begin()
    await execute('INSERT INTO late VALUES (1), (1)', { transactionId })
    expect((await failure(commit(transactionId))).message).toMatch(/^ERROR: duplicate key .*SQLState: 23505$/s)
    expect(await value('SELECT count(*) FROM late')).toEqual({ longValue: 0 })
    expect(api.dataApi.openTransactions()).toEqual([])
  })

  it('belongs to its secret and its database', async () => {
    await api.db.query('CREATE ROLE data_api_other LOGIN')
    const transactionId = await begin()
    const secretArn = api.secretFor('data_api_other')
    expect(await failure(execute('SELECT 1', { transactionId, secretArn }))).toMatchObject({
      name: 'TransactionNotFoundException',
    })
    expect(await failure(execute('SELECT 1', { transactionId, database: 'postgres' }))).toMatchObject({
      name: 'ValidationException',
    })
    await rollback(transactionId)
    await api.db.query('DROP ROLE data_api_other')
  })

  it('ends when its connection breaks', async () => {
    const transactionId = await begin()
    const pid = (await value('SELECT pg_backend_pid()', { transactionId }))?.longValue
    await api.db.query('SELECT pg_terminate_backend($1)', [pid])
    await expect
      .poll(async () => (await failure(execute('SELECT 1', { transactionId }))).message)
      .toBe(notFound(transactionId, 'One previous call resulted in a termination of your transaction.').message)
  })
})

describe('an idle transaction', () => {
  it('is rolled back, and its id is not found any more', async () => {
    await hastyClient.execute('CREATE TABLE entries (n int)')
    const transactionId = await hastyClient.begin()
    await hastyClient.execute('INSERT INTO entries VALUES (1)', { transactionId })
    await expect.poll(() => hasty.dataApi.openTransactions(), { timeout: 5_000 }).toEqual([])
    expect(await failure(hastyClient.commit(transactionId))).toMatchObject(notFound(transactionId, EXPIRED))
    await hastyClient.execute('TRUNCATE entries')
    expect(await hastyClient.value('SELECT count(*) FROM entries')).toEqual({ longValue: 0 })
  })

  it('is one without a call: each call gives it the whole time again, and a running one counts as none', async () => {
    const transactionId = await hastyClient.begin()
    for (let call = 0; call < 3; call++) await hastyClient.execute('SELECT pg_sleep(0.2)::text', { transactionId })
    await hastyClient.execute('SELECT pg_sleep(0.5)::text', { transactionId })
    expect(await hastyClient.commit(transactionId)).toBe('Transaction Committed')
  })
})
