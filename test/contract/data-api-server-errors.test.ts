import { RDSDataClient, ExecuteStatementCommand, ExecuteSqlCommand } from '@aws-sdk/client-rds-data'
import { afterAll, describe, expect, it } from 'vitest'
import { createDataApi } from '../../src/local/data-api/data-api.js'
import { startPostgres } from '../../src/local/postgres/launcher.js'
import { startTestDataApi } from '../support/data-api.js'
import { dataApiClient, failure } from '../support/data-api-client.js'

const api = await startTestDataApi()
const { execute, value, begin } = dataApiClient(api)
const request = (path: string, init: RequestInit = {}) =>
  fetch(`${api.endpoint}${path}`, {
    method: 'POST',
    headers: { authorization: 'any', 'content-type': 'application/json' },
    ...init,
  })

describe('a call is refused', () => {
  it('for a cluster that is not this one', async () => {
    const resourceArn = 'arn:aws:rds:us-east-1:000000000000:cluster:other'
    expect(await failure(execute('SELECT 1', { resourceArn }))).toMatchObject({
      name: 'HttpEndpointNotEnabledException',
      status: 400,
      message: `HttpEndpoint is not enabled for resource ${resourceArn}`,
    })
  })

  it.each(['arn:aws:secretsmanager:us-east-1:000000000000:secret:none', 'constructor'])(
    'for the unknown secret %s',
    async (secretArn) => {
      expect(await failure(execute('SELECT 1', { secretArn }))).toMatchObject({ name: 'SecretsErrorException', status: 400 })
    },
  )

  it('for a secret whose user cannot log in', async () => {
    expect(await failure(execute('SELECT 1', { secretArn: api.secretFor('nobody_here') }))).toMatchObject({
      name: 'InvalidSecretException',
      status: 400,
      message: 'role "nobody_here" does not exist; SQLState: 28000',
    })
  })

  it('for a database that does not exist', async () => {
    expect(await failure(execute('SELECT 1', { database: 'nowhere' }))).toMatchObject({
      name: 'DatabaseErrorException',
      status: 400,
      message: 'ERROR: database "nowhere" does not exist; SQLState: 3D000',
    })
  })

  it('for a schema', async () => {
    expect(await failure(execute('SELECT 1', { schema: 'public' }))).toMatchObject({
      name: 'ValidationException',
      message: "The schema parameter isn't supported.",
    })
  })

  it('for a member that is missing', async () => {
    const answer = await request('/Execute', { body: JSON.stringify({ resourceArn: api.resourceArn, secretArn: api.secretArn }) })
    expect(answer.status).toBe(400)
    expect(answer.headers.get('x-amzn-errortype')).toBe('ValidationException')
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining("Value at 'sql'") as string })
  })

  it('for the ExecuteSql of old', async () => {
    const client = new RDSDataClient({ ...api.clientConfig, maxAttempts: 1 })
    const input = { dbClusterOrInstanceArn: api.resourceArn, awsSecretStoreArn: api.secretArn, sqlStatements: 'SELECT 1' }
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- that it is refused is the point
    expect(await failure(client.send(new ExecuteSqlCommand(input)))).toMatchObject({ name: 'ValidationException' })
    client.destroy()
  })

  it.each([
    ['/Execute', { headers: {} }, 403, 'MissingAuthenticationTokenException'],
    ['/Execute', { body: '{"sql":' }, 400, 'SerializationException'],
    ['/Execute', { method: 'PUT' }, 404, 'UnknownOperationException'],
    ['/Nothing', {}, 404, 'UnknownOperationException'],
    ['/constructor', {}, 404, 'UnknownOperationException'],
  ])('at %s with %j', async (path, init, status, name) => {
    const answer = await request(path, init)
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([status, name])
  })
})

describe('an SQL error', () => {
  it('has its SQLSTATE, detail and hint in the message', async () => {
    await execute('CREATE TABLE facts (n int CONSTRAINT positive CHECK (n > 0))')
    expect(await failure(execute('INSERT INTO facts VALUES (-1)'))).toMatchObject({
      name: 'DatabaseErrorException',
      status: 400,
      message: `ERROR: new row for relation "facts" violates check constraint "positive"\n  Detail: Failing row contains (-1).; SQLState: 23514`,
    })
    expect((await failure(execute('SELECT m FROM facts'))).message).toBe(
      `ERROR: column "m" does not exist\n  Position: 8; SQLState: 42703`,
    )
  })

  it('that a function raises carries its own text and SQLSTATE', async () => {
    const raise = `DO $$ BEGIN RAISE EXCEPTION 'too late' USING ERRCODE = 'OB001', HINT = 'claim again'; END $$`
    expect((await failure(execute(raise))).message).toMatch(
      /^ERROR: too late\n {2}Hint: claim again\n {2}Where: .*; SQLState: OB001$/s,
    )
  })

  it('comes by a lock timeout and a serialization failure too', async () => {
    const blocker = await api.db.connect()
    await blocker.query('BEGIN')
    await blocker.query('LOCK TABLE facts')
    const impatient = await begin()
    await execute(`SET LOCAL lock_timeout = '10ms'`, { transactionId: impatient })
    expect((await failure(execute('SELECT * FROM facts', { transactionId: impatient }))).message).toMatch(/SQLState: 55P03$/)
    await blocker.query('ROLLBACK')
  })
})

describe('secrets', () => {
  it('log in as different users, with their own rights', async () => {
    await api.db.query('CREATE ROLE data_api_reader LOGIN')
    const secretArn = api.secretFor('data_api_reader')
    expect(await value('SELECT current_user::text', { secretArn })).toEqual({ stringValue: 'data_api_reader' })
    expect((await failure(execute('INSERT INTO facts VALUES (1)', { secretArn }))).message).toMatch(
      /permission denied .*SQLState: 42501$/s,
    )
    await api.db.query('DROP ROLE data_api_reader')
  })
})

describe('when PostgreSQL goes away', async () => {
  const postgres = await startPostgres()
  const { resourceArn, secretArn } = api
  const dataApi = createDataApi({
    server: postgres,
    resourceArn,
    readSecret: () => Promise.resolve('{"username":"postgres","password":"any"}'),
  })
  afterAll(async () => {
    await dataApi.stop()
    await postgres.stop()
  })
  const call = async (path: string, members: object) => {
    const body = Buffer.from(JSON.stringify({ resourceArn, secretArn, ...members }))
    const answer = await dataApi.handle({ method: 'POST', path, headers: { authorization: 'any' }, body })
    const fault = answer.headers['x-amzn-errortype']
    return { status: answer.status, fault, ...(JSON.parse(answer.body.toString()) as Record<string, unknown>) }
  }
  const select = (sql: string, members: object = {}) => call('/Execute', { sql, ...members })

  it('a statement under way fails without telling what became of it, the next are told so, and all is well again after', async () => {
    const { transactionId } = (await call('/BeginTransaction', {})) as { transactionId?: string }
    const underWay = select('SELECT pg_sleep(60)::text')
    await expect
      .poll(() => select(`SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()`))
      .toMatchObject({
        records: [[{ longValue: 1 }]],
      })
    await postgres.crash()
    expect(await underWay).toMatchObject({
      status: 400,
      fault: 'DatabaseErrorException',
      message: expect.stringMatching(/SQLState: 08006$/) as string,
    })
    expect(await select('SELECT 1')).toEqual({ status: 504, fault: 'DatabaseUnavailableException' })
    await postgres.restart()
    expect(await select('SELECT 1')).toMatchObject({ status: 200, records: [[{ longValue: 1 }]] })
    expect(await select('SELECT 1', { transactionId })).toMatchObject({ status: 404, fault: 'TransactionNotFoundException' })
  })
})

describe('faults that a test injects', () => {
  const client = new RDSDataClient({ ...api.clientConfig, maxAttempts: 1 })
  afterAll(() => client.destroy())
  const { resourceArn, secretArn, database } = api
  const insert = (n: number) =>
    client.send(new ExecuteStatementCommand({ resourceArn, secretArn, database, sql: `INSERT INTO facts VALUES (${n})` }))
  const facts = async () => (await api.db.query<{ n: number }>('SELECT n FROM facts ORDER BY n')).map(({ n }) => n)

  it('cut the connection before or after the effect, or refuse the call, as often as told', async () => {
    api.inject({ match: 'facts', fault: { kind: 'reset' } })
    await failure(insert(10))
    api.inject({ operation: 'Execute', fault: { kind: 'drop-reply' } })
    await failure(insert(11))
    api.inject({ match: /VALUES \(12\)/, times: 2, fault: { kind: 'error', name: 'DatabaseResumingException' } })
    expect((await failure(insert(12))).name).toBe('DatabaseResumingException')
    expect((await failure(insert(12))).name).toBe('DatabaseResumingException')
    expect(await facts()).toEqual([11])
    await insert(12)
    expect(await facts()).toEqual([11, 12])
  })
})
