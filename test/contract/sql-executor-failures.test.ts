import { RDSDataClient } from '@aws-sdk/client-rds-data'
import { afterEach, describe, expect, test } from 'vitest'
import { deadlineAfter } from '../../src/core/deadline.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase, type DataApiDatabase } from '../../src/data-api/database.js'
import { startScriptedDataApi, type ScriptedDataApi, type ScriptedReply } from '../support/scripted-data-api.js'
import { TestClock } from '../support/test-clock.js'

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
const arns = { resourceArn: 'arn:cluster', secretArn: 'arn:secret', database: 'orders' }
const select = { sql: 'SELECT 1', repeatable: true }
const insert = { sql: 'INSERT', repeatable: false }
const unavailable = { error: 'DatabaseUnavailableException', status: 504 } as const
const resuming = { error: 'DatabaseResumingException', status: 400, message: 'resuming' } as const
const throttled = { error: 'ThrottlingException', status: 429 } as const
const uniqueViolation = {
  error: 'DatabaseErrorException',
  status: 400,
  message: 'ERROR: duplicate key; SQLState: 23505',
} as const
const begun = { answer: { transactionId: 'tx-1' } } as const
const done = { answer: { numberOfRecordsUpdated: 1 } } as const
const notFound = { error: 'TransactionNotFoundException', status: 404, message: 'Transaction tx-1 is not found' } as const

let server: ScriptedDataApi | undefined
let client: RDSDataClient | undefined
let clock: TestClock

afterEach(async () => {
  client?.destroy()
  await server?.stop()
})

async function databaseThat(...replies: ScriptedReply[]): Promise<DataApiDatabase> {
  server = await startScriptedDataApi(replies)
  client = createRdsDataClient({ endpoint: server.endpoint, region: 'us-east-1', credentials })
  clock = new TestClock()
  return createDataApiDatabase({ ...arns, client, clock })
}

const operations = (): string[] => server?.calls.map((call) => call.operation) ?? []

describe('A statement', () => {
  test('goes out with its metadata asked for, integers as strings, and every digit of a bigint', async () => {
    const database = await databaseThat(done)
    await database.execute({ sql: 'SELECT :n', parameters: { n: 9_223_372_036_854_775_807n, none: null }, repeatable: true })
    expect(server?.calls[0]?.body).toContain('"longValue":9223372036854775807')
    expect(server?.calls[0]?.body).toContain('{"name":"none","value":{"isNull":true}}')
    expect(server?.calls[0]?.body).toContain('"includeResultMetadata":true')
    expect(server?.calls[0]?.body).toContain('"longReturnType":"STRING"')
    expect(server?.calls[0]?.body).not.toContain('transactionId')
  })

  test.each<[string, ScriptedReply]>([
    ['a reset', 'reset'],
    ['an answer cut in the middle', 'truncated'],
    ['an unavailable database', unavailable],
    ['an internal error', { error: 'InternalServerErrorException', status: 500 }],
    ['a gateway that answers in HTML', { answer: '<html>bad gateway</html>', status: 502 }],
  ])('is repeated after %s if it is repeatable, and thrown as ambiguous if not', async (_what, failure) => {
    const repeatable = await databaseThat(failure, done)
    expect(await repeatable.execute(select)).toMatchObject({ updatedRows: 1, repeated: true })
    await server?.stop()

    const once = await databaseThat(failure, done)
    await expect(once.execute(insert)).rejects.toMatchObject({ code: 'Sql', kind: 'ambiguous' })
    expect(operations()).toEqual(['Execute'])
  })

  test('waits for a database that is resuming, and one that is not repeatable too', async () => {
    const database = await databaseThat(resuming, resuming, resuming, done)
    expect(await database.execute(insert)).toMatchObject({ updatedRows: 1, repeated: false })
    expect(clock.slept.every((ms) => ms >= 1_000 && ms <= 2_000)).toBe(true)
    expect(clock.slept).toHaveLength(3)
  })

  test('gives up on a resuming database at its deadline', async () => {
    const database = await databaseThat(resuming)
    await expect(database.execute(select, { deadline: deadlineAfter(clock, 10_000) })).rejects.toMatchObject({
      kind: 'not-executed',
      errorName: 'DatabaseResumingException',
    })
  })

  test.each<ScriptedReply>(['hang', 'stall'])(
    'that is not answered (%s) is cut at the deadline and is ambiguous',
    async (reply) => {
      const database = await databaseThat(reply)
      const sent = database.execute(select, { deadline: deadlineAfter(clock, 3_000) })
      const settled = expect(sent).rejects.toMatchObject({ kind: 'ambiguous' })
      await expect.poll(() => server?.calls.length).toBe(1)
      clock.advance(3_000)
      await settled
    },
  )

  test('meets nobody and was not executed', async () => {
    const database = await databaseThat(done)
    await server?.stop()
    await expect(database.execute(insert, { deadline: deadlineAfter(clock, 1_000) })).rejects.toMatchObject({
      kind: 'not-executed',
    })
  })
})

describe('A client', () => {
  test('that retries by itself is refused before anything is sent', async () => {
    await databaseThat(done)
    const retrying = new RDSDataClient({ endpoint: server!.endpoint, region: 'us-east-1', credentials })
    const database = createDataApiDatabase({ ...arns, client: retrying })
    await expect(database.execute(select)).rejects.toMatchObject({ code: 'Configuration', setting: 'client' })
    await expect(database.execute(select)).rejects.toThrow('maxAttempts is 3, allowed is 1')
    expect(operations()).toEqual([])
    retrying.destroy()
  })

  test.each(['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_RDS_DATA'])('goes where %s says', async (variable) => {
    await databaseThat(done)
    const before = process.env[variable]
    process.env[variable] = server!.endpoint
    const fromEnvironment = createRdsDataClient({ region: 'us-east-1', credentials })
    try {
      await createDataApiDatabase({ ...arns, client: fromEnvironment }).execute(select)
      expect(operations()).toEqual(['Execute'])
    } finally {
      if (before === undefined) Reflect.deleteProperty(process.env, variable)
      else process.env[variable] = before
      fromEnvironment.destroy()
    }
  })
})

describe('Beginning a transaction', () => {
  test('is repeated whatever became of the last try: one that nobody knows ends by itself', async () => {
    const database = await databaseThat(resuming, 'reset', unavailable, begun)
    expect((await database.begin()).transactionId).toBe('tx-1')
  })
})

describe('Inside a transaction', () => {
  test('calls made at the same time run one after another, in the order made', async () => {
    const database = await databaseThat(begun, done)
    const tx = await database.begin()
    await Promise.all([
      tx.execute({ sql: 'first', repeatable: false }),
      tx.execute({ sql: 'second', repeatable: false }),
      tx.commit(),
    ])
    expect(operations()).toEqual(['BeginTransaction', 'Execute', 'Execute', 'CommitTransaction'])
    expect(server?.calls[1]?.body).toContain('"sql":"first"')
    expect(server?.calls[1]?.body).toContain('"transactionId":"tx-1"')
    expect(server?.calls[2]?.body).toContain('"sql":"second"')
  })

  test('a statement that was not executed is sent again in the same transaction', async () => {
    const database = await databaseThat(begun, throttled, done)
    const tx = await database.begin()
    expect(await tx.execute(insert)).toMatchObject({ updatedRows: 1, repeated: false })
  })

  test('an error of the database loses the transaction: later calls are not even sent', async () => {
    const database = await databaseThat(begun, uniqueViolation, done)
    const tx = await database.begin()
    await expect(tx.execute(insert)).rejects.toMatchObject({ kind: 'permanent', sqlState: '23505' })
    await expect(tx.execute(insert)).rejects.toMatchObject({ kind: 'transaction-lost', sqlState: '23505' })
    await expect(tx.commit()).rejects.toMatchObject({ kind: 'transaction-lost' })
    expect(operations()).toEqual(['BeginTransaction', 'Execute'])
    await tx.rollback()
    expect(operations()).toEqual(['BeginTransaction', 'Execute', 'RollbackTransaction'])
  })

  test('a lost reply loses the transaction, even for a repeatable statement: the first sending may still run', async () => {
    const database = await databaseThat(begun, 'reset', done)
    const tx = await database.begin()
    await expect(tx.execute(select)).rejects.toMatchObject({ kind: 'transaction-lost' })
    await expect(tx.commit()).rejects.toMatchObject({ kind: 'transaction-lost' })
    expect(operations()).toEqual(['BeginTransaction', 'Execute'])
  })

  test('a parameter that cannot be sent harms nothing', async () => {
    const database = await databaseThat(begun, done)
    const tx = await database.begin()
    await expect(tx.execute({ sql: 'x', parameters: { n: 1.5 }, repeatable: false })).rejects.toMatchObject({
      errorName: 'InvalidParameter',
    })
    await tx.commit()
    expect(operations()).toEqual(['BeginTransaction', 'CommitTransaction'])
  })

  test('an expired one is lost', async () => {
    const database = await databaseThat(begun, {
      error: 'DatabaseErrorException',
      status: 400,
      message: 'Transaction tx-1 is not found. Transaction may be expired.',
    })
    const tx = await database.begin()
    await expect(tx.execute(insert)).rejects.toMatchObject({ kind: 'transaction-lost' })
  })

  test('nothing is sent after it has ended', async () => {
    const database = await databaseThat(begun, done)
    const tx = await database.begin()
    await tx.commit()
    await expect(tx.execute(insert)).rejects.toThrow('the transaction is over (committed)')
    await tx.rollback()
    expect(operations()).toEqual(['BeginTransaction', 'CommitTransaction'])
  })
})

describe('A commit', () => {
  test('whose reply is lost is sent again, and its answer counts', async () => {
    const database = await databaseThat(begun, 'reset', { answer: { transactionStatus: 'Transaction Committed' } })
    const tx = await database.begin()
    await tx.commit()
    expect(operations()).toEqual(['BeginTransaction', 'CommitTransaction', 'CommitTransaction'])
  })

  test('that finds nothing after a lost reply is ambiguous: the first one may have worked', async () => {
    const database = await databaseThat(begun, 'reset', notFound)
    const tx = await database.begin()
    await expect(tx.commit()).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(await tx.end()).toBe('gone')
    expect(operations()).toHaveLength(3)
  })

  test.each(['TransactionNotFoundException', 'NotFoundException'])(
    'that finds nothing at once (%s) has lost its transaction',
    async (error) => {
      const database = await databaseThat(begun, { error, status: 404 })
      const tx = await database.begin()
      await expect(tx.commit()).rejects.toMatchObject({ kind: 'transaction-lost' })
      // what lies between may have sent it twice
      expect(await tx.end()).toBe('gone')
    },
  )

  test('that stays in doubt is settled by a rollback: if that is answered, nothing was committed', async () => {
    const database = await databaseThat(begun, unavailable, unavailable, done)
    const tx = await database.begin()
    await expect(tx.commit({ deadline: deadlineAfter(clock, 150) })).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(await tx.end()).toBe('rolled-back')
  })

  test('that stays in doubt, and whose rollback finds nothing, is gone one way or the other', async () => {
    const database = await databaseThat(begun, unavailable, unavailable, notFound)
    const tx = await database.begin()
    await expect(tx.commit({ deadline: deadlineAfter(clock, 150) })).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(await tx.end()).toBe('gone')
  })

  test('that was throttled to its deadline can be tried again', async () => {
    const database = await databaseThat(begun, throttled, throttled, done)
    const tx = await database.begin()
    await expect(tx.commit({ deadline: deadlineAfter(clock, 150) })).rejects.toMatchObject({ kind: 'not-executed' })
    await tx.commit()
  })
})

describe('A rollback', () => {
  test('never throws, and says when it does not know', async () => {
    const database = await databaseThat(begun, unavailable)
    const tx = await database.begin()
    await tx.rollback()
    expect(await tx.end()).toBe('unknown')
    expect(clock.nowMs()).toBeLessThanOrEqual(20_000)
  })

  test('of a transaction that is gone is fine', async () => {
    const database = await databaseThat(begun, notFound)
    const tx = await database.begin()
    expect(await tx.end()).toBe('rolled-back')
  })

  test('waits for an earlier call that is still running', async () => {
    const busy = { error: 'DatabaseErrorException', status: 400, message: 'Transaction is still running a query' } as const
    const database = await databaseThat(begun, busy, busy, done)
    const tx = await database.begin()
    expect(await tx.end()).toBe('rolled-back')
  })
})
