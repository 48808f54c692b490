import {
  DescribeSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  RotateSecretCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { sdkOptions } from '../support/local-services.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

const bound = { timeout: 60_000, interval: 100 }

describe("the rotation of a database user's secret, while the relay runs", () => {
  let stack: LocalStack
  let clients: OutboxClients
  let secrets: SecretsManagerClient
  let database: pg.Client
  const lines: string[] = []
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 1, log: (line) => lines.push(line) })
    clients = outboxClients(stack.description)
    secrets = new SecretsManagerClient(sdkOptions(stack.description.endpoint))
    database = new pg.Client(stack.description.databaseUrl)
    await database.connect()
  }, 120_000)
  afterAll(async () => {
    await database.end()
    secrets.destroy()
    clients.destroy()
    await stack.stop()
  })

  const current = async (SecretId: string) => {
    const { SecretString } = await secrets.send(new GetSecretValueCommand({ SecretId }))
    return JSON.parse(SecretString!) as { readonly username: string; readonly password: string }
  }
  /** Answers once the new version is the current one. */
  const rotate = async (SecretId: string) => {
    const { VersionId } = await secrets.send(new RotateSecretCommand({ SecretId }))
    await expect
      .poll(async () => (await secrets.send(new DescribeSecretCommand({ SecretId }))).VersionIdsToStages?.[VersionId!], bound)
      .toContain('AWSCURRENT')
  }
  const said = (logId: string) => lines.filter((line) => line.includes(`"logId":"${logId}"`))
  /** Users with the relay's rights, as the Data API has connected them. */
  const connected = async () => {
    const sql = "SELECT DISTINCT usename FROM pg_stat_activity WHERE usename LIKE 'local\\_relay%' ORDER BY 1"
    return (await database.query<{ usename: string }>(sql)).rows.map(({ usename }) => usename)
  }
  const delivered = async () => {
    const sql = 'SELECT count(*)::int AS events, coalesce(max(attempts), 0)::int AS attempts FROM outbox_receipt'
    return (await database.query<{ events: number; attempts: number }>(sql)).rows[0]!
  }

  it('delivers all that is written meanwhile at the first attempt: two users take turns, and no login fails', async () => {
    const first = await current('outbox/relay')
    expect(first.username).toBe('local_relay')
    let written = 0
    let writing = true
    const writer = (async () => {
      while (writing) await clients.insert('Rotated', `{"n":${++written}}`, 'queue')
    })()
    try {
      for (const turn of [1, 2, 3]) {
        await rotate('outbox/relay')
        const { username, password } = await current('outbox/relay')
        expect(username).toBe(turn % 2 === 1 ? 'local_relay_2' : 'local_relay')
        expect(password).not.toBe(first.password)
        await expect.poll(connected, bound).toContain(username)
        const before = written
        await expect.poll(() => written, bound).toBeGreaterThan(before + 5)
      }
    } finally {
      writing = false
      await writer
    }
    await expect.poll(delivered, bound).toEqual({ events: written, attempts: 1 })
    expect(said('database-error')).toEqual([])
    expect(said('user-secret-rotated')).toHaveLength(12)
    expect(lines.join('\n')).not.toContain((await current('outbox/relay')).password)
  })

  it('that fails leaves the user of before at work, and is taken up again with the same version', async () => {
    const before = await current('outbox/monitor')
    stack.faults.set({
      rules: [
        {
          service: 'rds-data',
          operation: 'ExecuteStatement',
          match: 'CREATE ROLE',
          times: 1,
          fault: { kind: 'error', name: 'AccessDeniedException' },
        },
      ],
    })
    const { VersionId } = await secrets.send(new RotateSecretCommand({ SecretId: 'outbox/monitor' }))
    await expect.poll(() => lines.filter((line) => line.includes('the rotation of')).length, bound).toBe(1)
    stack.faults.clear()
    expect(await current('outbox/monitor')).toEqual(before)
    expect((await stack.invoke('monitor')).error).toBeNull()

    await rotate('outbox/monitor')
    expect((await secrets.send(new GetSecretValueCommand({ SecretId: 'outbox/monitor' }))).VersionId).toBe(VersionId)
    expect((await current('outbox/monitor')).username).toBe('local_monitor_2')
    expect((await stack.invoke('monitor')).error).toBeNull()
  })

  it('by hand stops the relay until the migration has run: nothing is charged, nothing is lost', async () => {
    const { username } = await current('outbox/relay')
    const { events } = await delivered()
    const SecretString = JSON.stringify({ username, password: 'chosen-by-hand' })
    await secrets.send(new PutSecretValueCommand({ SecretId: 'outbox/relay', SecretString }))
    const refused = await stack.invoke('relay')
    expect(refused.error?.message).toMatch(/password authentication failed for user "local_relay_2"|InvalidSecretException/)
    for (const n of [1, 2, 3]) await clients.insert('ByHand', `{"n":${n}}`, 'queue')

    expect((await stack.invoke('migrate')).error).toBeNull()
    expect((await stack.invoke('relay')).error).toBeNull()
    await expect.poll(delivered, bound).toEqual({ events: events + 3, attempts: 1 })
  })

  it("is refused for a secret that is no function's", async () => {
    const step = { Step: 'setSecret', SecretId: stack.description.secretArn, ClientRequestToken: 'x'.repeat(32) }
    const { error } = await stack.invoke('migrate', step)
    expect(error?.message).toContain(
      `SecretId is "${stack.description.secretArn}", which is no database user's secret here; allowed:`,
    )
  })
})
