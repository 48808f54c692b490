import {
  BatchExecuteStatementCommand,
  BeginTransactionCommand,
  CommitTransactionCommand,
  ExecuteStatementCommand,
  RDSDataClient,
  RollbackTransactionCommand,
} from '@aws-sdk/client-rds-data'
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { sdkOptions } from '../support/local-services.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

describe('a service with the calls that grantWrite gives, and a database user that is a member of outbox_writer', () => {
  let stack: LocalStack
  let clients: OutboxClients
  let rds: RDSDataClient
  let place: { readonly resourceArn: string; readonly secretArn: string; readonly database: string }
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    clients = outboxClients(stack.description)
    const database = new pg.Client(stack.description.databaseUrl)
    await database.connect()
    await database.query(`CREATE ROLE order_service LOGIN PASSWORD 'of-its-own'`)
    await database.query('GRANT outbox_writer TO order_service')
    await database.end()
    const secrets = new SecretsManagerClient(sdkOptions(stack.description.endpoint))
    const SecretString = '{"username":"order_service","password":"of-its-own"}'
    const { ARN } = await secrets.send(new CreateSecretCommand({ Name: 'order-service', SecretString }))
    secrets.destroy()
    rds = new RDSDataClient(sdkOptions(stack.description.endpoint))
    place = { resourceArn: stack.description.resourceArn, secretArn: ARN!, database: stack.description.database }
    await clients.insert('Secretive', '{"card":"of somebody else"}', 'queue')
  }, 120_000)
  afterAll(async () => {
    rds.destroy()
    clients.destroy()
    await stack.stop()
  })

  const execute = (sql: string, transactionId?: string) =>
    rds.send(new ExecuteStatementCommand({ ...place, sql, ...(transactionId === undefined ? {} : { transactionId }) }))
  const insert = (n: number) =>
    `INSERT INTO outbox (event_type, payload, destination) VALUES ('OrderCreated', '{"n":${n}}', 'queue')`

  it('writes events, in transactions and in batches, and they are delivered', async () => {
    const { transactionId } = await rds.send(new BeginTransactionCommand(place))
    await execute(`${insert(1)} RETURNING id`, transactionId)
    await rds.send(new CommitTransactionCommand({ ...place, transactionId }))
    const { transactionId: given } = await rds.send(new BeginTransactionCommand(place))
    await execute(insert(2), given)
    await rds.send(new RollbackTransactionCommand({ ...place, transactionId: given }))
    await rds.send(new BatchExecuteStatementCommand({ ...place, sql: insert(3), parameterSets: [[], []] }))

    expect((await stack.invoke('relay')).error).toBeNull()
    const events = (await clients.take('queue', 4)).map((body) => /"data":(.*)\}$/.exec(body)?.[1])
    expect(events.sort()).toEqual(['{"card":"of somebody else"}', '{"n":1}', '{"n":3}', '{"n":3}'])
  })

  it.each([
    'SELECT payload FROM outbox',
    'SELECT * FROM outbox',
    `SELECT event_type FROM outbox WHERE payload LIKE '%card%'`,
    `${insert(4)} RETURNING payload`,
    `UPDATE outbox SET payload = '{}'`,
    'DELETE FROM outbox',
    'TRUNCATE outbox',
    'SELECT * FROM outbox_status',
    'SELECT * FROM outbox_delivery',
    'SELECT * FROM outbox_receipt',
    'DELETE FROM outbox_delivery',
    `SELECT * FROM outbox_claim(gen_random_uuid(), 'x', 10, 1000, 1, 1, 1, NULL)`,
    'SELECT * FROM outbox_payload_chunks(gen_random_uuid(), 0, 1, 1)',
    `SELECT outbox_operate('discard', '{}', 1, false, 'a', 'b')`,
    'SET ROLE outbox_relay',
    'COPY outbox TO STDOUT',
  ])('may not: %s', async (sql) => {
    await expect(execute(sql)).rejects.toMatchObject({
      message: expect.stringMatching(/permission denied.*SQLState: 42501/s) as string,
    })
  })
})
