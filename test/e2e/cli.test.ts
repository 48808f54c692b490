import { readFileSync } from 'node:fs'
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { runCli } from '../../src/cli/main.js'
import type { LocalStackDescription } from '../../src/local/stack.js'
import type { SqlDatabase, SqlParameter } from '../../src/core/ports.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase } from '../../src/data-api/database.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { runOutbox, startOutbox, type RunningCommand } from '../support/outbox-command.js'

const document = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

let local: RunningCommand
let description: LocalStackDescription
let environment: Record<string, string>
let database: SqlDatabase

beforeAll(async () => {
  local = startOutbox(['local', '--port', '0', '--relays', '0', '--json'])
  description = JSON.parse(await local.firstLine) as LocalStackDescription
  environment = {
    AWS_ENDPOINT_URL: description.endpoint,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    OUTBOX_CLUSTER_ARN: description.resourceArn,
    OUTBOX_SECRET_ARN: description.secretArn,
    OUTBOX_DATABASE: description.database,
  }
  // for what runs in this process; the built command gets them as its environment
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
  database = createDataApiDatabase({
    ...description,
    client: createRdsDataClient({
      endpoint: description.endpoint,
      region: description.region,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    }),
  })
}, 60_000)

afterAll(async () => {
  vi.unstubAllEnvs()
  local.signal('SIGTERM')
  await local.ended
})

const sql = async (text: string, parameters: Readonly<Record<string, SqlParameter>> = {}) =>
  (await database.execute({ sql: text, parameters, repeatable: false })).rows

/** The command in this process: 1 s faster than the built one, of which one test below is enough. */
const run = async (args: readonly string[]) => {
  const terminal = fakeTerminal({ environment })
  const code = await runCli(args, terminal)
  return { code, out: terminal.outText(), err: terminal.errText() }
}

const ids = {
  ready: '01900000-0000-7000-8000-000000000001',
  failed: '01900000-0000-7000-8000-000000000002',
  published: '01900000-0000-7000-8000-000000000003',
  scheduled: '01900000-0000-7000-8000-000000000004',
}
const payload = '{"total": 12345678901234567890.10,  "text": "ü"}'

interface EventsAnswer {
  readonly nowMs: number
  readonly events: readonly Record<string, unknown>[]
  readonly more: boolean
}

const json = async <Answer>(...args: string[]): Promise<Answer> => {
  const { code, out, err } = await run([...args, '--json'])
  expect(err).toBe('')
  expect(code).toBe(0)
  expect(out.trimEnd().split('\n')).toHaveLength(1)
  return JSON.parse(out) as Answer
}

const idsOf = ({ events }: EventsAnswer): unknown[] => events.map(({ id }) => id)

describe('status, list and show', () => {
  beforeAll(async () => {
    const insert =
      'INSERT INTO outbox (id, event_type, ordering_key, destination, payload, available_at) VALUES (CAST(:id AS uuid), :type, :key, :to, :payload, CAST(:at AS timestamptz))'
    const write = (id: string, type: string, key: string | null, at: string | null) =>
      sql(insert, { id, type, key, to: 'fifo', payload, at })
    await write(ids.ready, 'OrderCreated', 'customer-1', null)
    await write(ids.failed, 'OrderCreated', 'customer-2', null)
    await write(ids.published, 'OrderPaid', null, null)
    await write(ids.scheduled, 'OrderReminder', null, '2999-01-01T00:00:00Z')
    // as a relay would have left them; what relays do is for other tests
    await sql(
      "UPDATE outbox_delivery SET lane = 3, failed_at = now(), blocks_key = true, attempts = 10, last_error_code = 'TooLarge', last_error = 'first line' || chr(10) || 'second line' WHERE event_id = CAST(:id AS uuid)",
      { id: ids.failed },
    )
    await sql(
      "WITH gone AS (DELETE FROM outbox_delivery WHERE event_id = CAST(:id AS uuid) RETURNING event_id) INSERT INTO outbox_receipt (event_id, attempts, replays, destination, broker_message_id) SELECT event_id, 1, 0, 'fifo', 'message-1' FROM gone",
      { id: ids.published },
    )
  })

  it('status tells backlog, age, failures, leases, version and installation', async () => {
    interface StatusAnswer {
      readonly backlog: Record<string, number>
      readonly sizes: readonly Readonly<Record<string, unknown>>[]
    }
    const answer = await json<StatusAnswer>('status')
    expect(answer).toMatchObject({
      schema: 'public',
      schemaVersion: expect.any(Number) as number,
      minRelayVersion: expect.stringMatching(/^\d+\.\d+\.\d+$/) as string,
      problem: null,
      backlog: { depth: 1, failed: 1, scheduled: 1, backingOff: 0, held: 0, blockedKeys: 1, leasedShards: 0 },
    })
    expect(answer.backlog['ageSeconds']).toBeGreaterThan(0)
    expect(answer.sizes.map(({ table }) => table)).toEqual(['outbox', 'outbox_audit', 'outbox_delivery', 'outbox_receipt'])
    expect(answer.sizes.every(({ tableBytes, indexBytes }) => Number(tableBytes) > 0 && Number(indexBytes) > 0)).toBe(true)
    const fields = [answer, answer.backlog, answer.sizes[0] ?? {}].flatMap((object) => Object.keys(object))
    for (const field of fields) expect(document).toContain(field)

    const { out } = await run(['status'])
    expect(out).toMatch(/^backlog +1 event due and not delivered, the oldest for /m)
    expect(out).toMatch(/^failed +1 event, the first .* ago$/m)
    expect(out).toMatch(/^leases +0 of 16 shards$/m)
    expect(out).toMatch(/^outbox_delivery +\d+ kB, indexes \d+ kB/m)
  })

  it('list shows the newest first and filters by each option', async () => {
    const all = await json<EventsAnswer>('list')
    expect(idsOf(all)).toEqual([ids.scheduled, ids.published, ids.failed, ids.ready])
    expect(all.more).toBe(false)
    for (const field of Object.keys(all.events[0] ?? {})) expect(document).toContain(`\`${field}\``)

    expect(idsOf(await json('list', '--status', 'failed'))).toEqual([ids.failed])
    expect(idsOf(await json('list', '--status', 'pending'))).toEqual([ids.scheduled, ids.ready])
    expect(idsOf(await json('list', '--status', 'published'))).toEqual([ids.published])
    expect(idsOf(await json('list', '--status', 'discarded'))).toEqual([])
    expect(idsOf(await json('list', '--event-type', 'OrderCreated'))).toEqual([ids.failed, ids.ready])
    expect(idsOf(await json('list', '--key', 'customer-2'))).toEqual([ids.failed])
    expect(idsOf(await json('list', '--destination', 'fifo'))).toHaveLength(4)
    expect(idsOf(await json('list', '--destination', 'bus'))).toEqual([])
  })

  it('list says when there is more than its limit', async () => {
    const cut = await json<EventsAnswer>('list', '--limit', '2')
    expect(idsOf(cut)).toEqual([ids.scheduled, ids.published])
    expect(cut.more).toBe(true)
    const { err } = await run(['list', '--limit', '2'])
    expect(err).toMatch(/there are more; the newest 2 are shown/)
  })

  it('list draws a table in which an error of several lines stays one', async () => {
    const { out, code } = await run(['list'])
    const lines = out.trimEnd().split('\n')
    expect(lines).toHaveLength(5)
    expect(lines[0]).toMatch(/^ID +TYPE +KEY +DESTINATION +STATUS +SINCE +ATTEMPTS +ERROR$/)
    expect(lines.find((line) => line.startsWith(ids.failed))).toMatch(
      /failed: blocks its key .* ago +10 {2}TooLarge: first line second line$/,
    )
    expect(lines.find((line) => line.startsWith(ids.scheduled))).toMatch(/pending: scheduled +in \d+ days/)
    expect(code).toBe(0)
  })

  it('show tells everything of one event, the payload only if asked for, byte for byte', async () => {
    const plain = await json<Record<string, Record<string, unknown>>>('show', ids.published)
    expect(plain['event']).toMatchObject({
      id: ids.published,
      status: 'published',
      destination: 'fifo',
      brokerMessageId: 'message-1',
      payloadBytes: Buffer.byteLength(payload),
    })
    expect(plain).not.toHaveProperty('payload')
    expect((await json<Record<string, unknown>>('show', ids.failed, '--payload'))['payload']).toBe(payload)

    const withPayload = await run(['show', ids.failed, '--payload'])
    expect(withPayload.out).toMatch(/^error code +TooLarge$/m)
    expect(withPayload.out.endsWith(`\n\n${payload}\n`)).toBe(true)
    expect((await run(['show', ids.failed])).out).not.toContain('12345678901234567890')
  })

  it('show of an id that is not there is exit code 3', async () => {
    const { code, out, err } = await run(['show', '01900000-0000-7000-8000-00000000ffff', '--json'])
    expect(err).toMatch(/^outbox: there is no event 01900000-0000-7000-8000-00000000ffff in schema "public"/)
    expect(out).toBe('')
    expect(code).toBe(3)
  })
})

describe('the built command', () => {
  it('answers as the one in this process does', async () => {
    const { code, out, err } = await runOutbox(['status', '--json'], environment)
    expect(JSON.parse(out)).toMatchObject({ schema: 'public', problem: null })
    expect(err).toBe('')
    expect(code).toBe(0)
  })
})

describe('migrate', () => {
  it('creates an outbox in another schema, and then has nothing to do', async () => {
    interface MigrateAnswer {
      readonly applied: readonly string[]
    }
    const first = await json<MigrateAnswer>('migrate', '--schema', 'billing', '--installation', 'billing-relay')
    expect(first).toMatchObject({ schema: 'billing', installation: 'billing-relay' })
    expect(first.applied.length).toBeGreaterThan(5)
    expect((await json<MigrateAnswer>('migrate', '--schema', 'billing')).applied).toEqual([])
    expect(await json('status', '--schema', 'billing')).toMatchObject({ installation: 'billing-relay', backlog: { depth: 0 } })

    const { out } = await run(['migrate', '--schema', 'billing'])
    expect(out).toMatch(
      /^nothing to do: the outbox in schema "billing" of database ".*" is at version \d+\ninstallation: billing-relay\n$/,
    )
  })

  it('refuses to hand an outbox to a second installation, naming both', async () => {
    await json('migrate', '--schema', 'taken', '--installation', 'first')
    const { code, err } = await run(['migrate', '--schema', 'taken', '--installation', 'second'])
    expect(err).toMatch(/^outbox: .*"first".*"second".*\n$/)
    expect(code).toBe(4)
  })

  it("makes a function's database user, as its secret says, and says which secret it cannot read", async () => {
    const client = new SecretsManagerClient({ region: description.region })
    const password = 'chosen-for-the-test'
    const SecretString = JSON.stringify({ username: 'billing_relay', password })
    const { ARN } = await client.send(new CreateSecretCommand({ Name: 'billing/relay', SecretString }))
    client.destroy()
    const { code, out } = await run(['migrate', '--schema', 'billing', '--user-secret', `relay=${ARN!}`])
    expect([code, out]).toEqual([0, expect.stringMatching(/\ndatabase user: billing_relay \(relay\)\n$/)])
    expect(out).not.toContain(password)
    const as = new pg.Client({ connectionString: description.databaseUrl, user: 'billing_relay', password })
    await as.connect()
    expect((await as.query('SELECT * FROM billing.outbox_backlog()')).rowCount).toBe(1)
    await as.end()

    const missing = await run(['migrate', '--schema', 'billing', '--user-secret', `monitor=${ARN!}-none`])
    expect(missing.err).toMatch(
      /^outbox: the secret of the monitor's database user cannot be read: arn:.*-none: ResourceNotFound.*\n$/,
    )
    const twice = await run(['migrate', '--user-secret', `relay=${ARN!}`, '--user-secret', `relay=${ARN!}`])
    expect(twice.err).toContain('It must be <function>=<secret ARN>, once for each of relay, cleanup, monitor, canary')
  })

  it("creates the inbox's table in a consumer's schema", async () => {
    await sql('CREATE SCHEMA consumer')
    expect(await json('migrate', '--inbox', '--schema', 'consumer')).toEqual({ schema: 'consumer', applied: ['inbox.sql'] })
    expect(await json('migrate', '--inbox', '--schema', 'consumer')).toEqual({ schema: 'consumer', applied: [] })
    expect(await sql('SELECT count(*) AS ids FROM consumer.outbox_inbox')).toEqual([{ ids: 0n }])
  })
})

describe('what goes wrong is one line and an exit code', () => {
  const failing = async (args: readonly string[]) => {
    const { code, out, err } = await run([...args, '--timeout', '3'])
    expect(out).toBe('')
    expect(err).toMatch(/^outbox: [^\n]+\n$/)
    expect(err).not.toMatch(/\n\s+at /)
    return { code, err }
  }

  it('a wrong cluster ARN', async () => {
    const { code, err } = await failing(['status', '--cluster-arn', `${description.resourceArn}-wrong`])
    expect(err).toContain(`${description.resourceArn}-wrong`)
    expect(code).toBe(1)
  })

  it('a wrong secret', async () => {
    const { code, err } = await failing(['list', '--secret-arn', `${description.secretArn}-wrong`])
    expect(err).toContain(`${description.secretArn}-wrong`)
    expect(code).toBe(1)
  })

  it('a database that does not exist', async () => {
    const { code, err } = await failing(['show', ids.ready, '--database', 'nowhere'])
    expect(err).toContain('nowhere')
    expect(code).toBe(1)
  })

  it('a schema without an outbox', async () => {
    for (const args of [['status'], ['list'], ['show', ids.ready]]) {
      const { code, err } = await failing([...args, '--schema', 'empty'])
      expect(err).toMatch(/there is no outbox here, run "outbox migrate"/)
      expect(code).toBe(4)
    }
  })

  it('an outbox that is newer than this release', async () => {
    await json('migrate', '--schema', 'newer')
    await sql("UPDATE newer.outbox_meta SET schema_version = 999, min_relay_version = '99.0.0'")
    const { code, out, err } = await run(['status', '--schema', 'newer', '--json'])
    expect(JSON.parse(out)).toMatchObject({ schemaVersion: 999, problem: expect.stringContaining('99.0.0') as string })
    expect(err).toMatch(/^outbox: the outbox in schema "newer" is too new: it needs relay 99\.0\.0/)
    expect(code).toBe(4)
  })

  it('an endpoint where nothing listens, after the time-out that was asked for', async () => {
    const elsewhere = { ...environment, AWS_ENDPOINT_URL: 'http://127.0.0.1:9' }
    const { code, err } = await runOutbox(['status', '--timeout', '3'], elsewhere)
    expect(err).toMatch(/^outbox: [^\n]+\n$/)
    expect(code).toBe(1)
  })

  it('no credentials', async () => {
    const { AWS_ACCESS_KEY_ID: _id, AWS_SECRET_ACCESS_KEY: _key, ...rest } = environment
    const { code, err } = await runOutbox(['status', '--timeout', '3'], { ...rest, HOME: '/nonexistent' })
    expect(err).toMatch(/^outbox: [^\n]*credentials[^\n]*\n$/i)
    expect(code).toBe(1)
  })

  it('the port of a local stack that is taken', async () => {
    const { port } = new URL(description.endpoint)
    const { code, out, err } = await runOutbox(['local', '--port', port, '--relays', '0', '--json'])
    expect(err).toMatch(new RegExp(`^outbox: [^\\n]*${port}[^\\n]*\\n$`))
    expect(out).toBe('')
    expect(code).toBe(2)
  })
})
