import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toEnvironment } from '../../src/config/parse.js'
import { relaySettings } from '../../src/config/settings.js'
import { lambdaEnvironment } from '../../src/local/lambda/environment.js'
import { LocalFunction } from '../../src/local/lambda/local-function.js'
import { builtFile } from '../../src/local/lambda/package-root.js'
import { DATABASE, RESOURCE_ARN, loginSecretArn } from '../../src/local/stack/database.js'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

describe('a relay that is started with a wrong configuration', () => {
  let stack: LocalStack
  let clients: OutboxClients
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    clients = outboxClients(stack.description)
  }, 120_000)
  afterAll(async () => {
    clients.destroy()
    await stack.stop()
  })

  /** One invocation of the bundled relay with these environment variables changed; what it logged, line by line. */
  async function start(changes: Readonly<Record<string, string>>) {
    const { endpoint, queues } = stack.description
    const settings = toEnvironment(relaySettings, {
      resourceArn: RESOURCE_ARN,
      secretArn: loginSecretArn('relay'),
      database: DATABASE,
      installation: 'local',
      destinations: { queue: { type: 'sqs', queueUrl: queues.queue! } },
      defaultDestination: 'queue',
      profile: 'drain',
    })
    const relay = new LocalFunction(
      {
        name: 'relay',
        hostPath: builtFile('local', 'lambda-host.mjs'),
        modulePath: builtFile('lambdas', 'relay', 'index.mjs'),
        timeoutSeconds: 90,
        environment: { ...lambdaEnvironment('relay', endpoint), ...settings, ...changes },
      },
      () => undefined,
    )
    try {
      const { error, logs } = await relay.invoke()
      const logged = logs.filter((line) => line.startsWith('{"level"')).map((line) => JSON.parse(line) as Record<string, string>)
      return { error, logged, logs }
    } finally {
      await relay.stop()
    }
  }

  beforeEach(async () => {
    await clients.execute(`INSERT INTO outbox (event_type, payload) VALUES ('Waiting', '{"n": 1}')`)
  })

  it.each([
    [
      'a wrong cluster ARN',
      { OUTBOX_CLUSTER_ARN: 'arn:aws:rds:us-east-1:000000000000:cluster:nobody' },
      'database-error',
      /cluster:nobody/,
    ],
    [
      'a wrong secret',
      { OUTBOX_SECRET_ARN: 'arn:aws:secretsmanager:us-east-1:000000000000:secret:nobody-AbCdEf' },
      'database-error',
      /secret:nobody-AbCdEf/,
    ],
    [
      'a schema without an outbox',
      { OUTBOX_SCHEMA: 'elsewhere' },
      'schema-refused',
      /schema "elsewhere" has no outbox: run the migration/,
    ],
    [
      'a route to a destination that is not configured',
      { OUTBOX_ROUTES: '[{"eventType":"Order*","to":"orders"}]' },
      'configuration-error',
      /^OUTBOX_ROUTES \[0\] sends "Order\*" to "orders", which is not configured \(configured destinations: queue\)$/,
    ],
    [
      'a setting out of range',
      { OUTBOX_LEASE_SECONDS: '5' },
      'configuration-error',
      /^OUTBOX_LEASE_SECONDS is wrong: .*Seen: 5$/,
    ],
    [
      "another installation's outbox",
      { OUTBOX_INSTALLATION: 'second' },
      'schema-refused',
      /served by installation "local", so "second" must not/,
    ],
  ])('ends with one clear line: %s', async (_, changes, logId, reason) => {
    const { error, logged } = await start(changes)
    expect(error).not.toBeNull()
    expect(logged.map((line) => line.logId)).toEqual([logId])
    expect(logged[0]?.reason).toMatch(reason)
    expect(logged[0]?.reason).not.toContain('\n')
    await stack.invoke('relay')
    await expectDelivered()
  })

  it('ends with one clear line: a schema that is too new', async () => {
    await clients.execute(`UPDATE outbox_meta SET min_relay_version = '9.0.0'`)
    try {
      const { error, logged } = await start({})
      expect(error).not.toBeNull()
      expect(logged.map((line) => line.logId)).toEqual(['schema-refused'])
      expect(logged[0]?.reason).toMatch(/needs relay 9\.0\.0 or later, this is \d+\.\d+\.\d+/)
    } finally {
      await clients.execute(`UPDATE outbox_meta SET min_relay_version = '0.1.0'`)
    }
    await stack.invoke('relay')
    await expectDelivered()
  })

  it('waits with an event that has no route, or a destination nobody configured, while others flow', async () => {
    await clients.execute(`INSERT INTO outbox (event_type, payload, destination) VALUES ('Lost', '{"n": 2}', 'nowhere')`)
    const { error, logged } = await start({
      OUTBOX_DEFAULT_DESTINATION: '',
      OUTBOX_ROUTES: '[{"eventType":"Waiting","to":"queue"}]',
    })
    expect(error).toBeNull()
    expect(await clients.take('queue', 1)).toHaveLength(1)
    expect(logged.filter((line) => line.logId === 'event-unrouted').map((line) => line.reason)).toContain(
      'event type "Lost" goes to destination "nowhere", which is not configured (configured: queue)',
    )
    const { records } = await clients.execute(`SELECT attempts, last_error_code FROM outbox_delivery`)
    expect(records).toEqual([[{ longValue: 0 }, { stringValue: 'UnknownDestination' }]])
  })

  async function expectDelivered(): Promise<void> {
    const { records } = await clients.execute(`SELECT count(*) FROM outbox_delivery`)
    expect(records).toEqual([[{ longValue: 0 }]])
  }
})
