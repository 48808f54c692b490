import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { runCli } from '../../src/cli/main.js'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

describe('the ordering policy of a route, from its configuration to the queue', () => {
  let directory: string
  let stack: LocalStack
  let database: pg.Client
  let clients: OutboxClients
  let environment: Record<string, string>
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outbox-policy-test-'))
    const configFile = join(directory, 'config.json')
    const config = {
      destinations: { orders: { type: 'sqs', queueUrl: 'orders' }, mail: { type: 'sqs', queueUrl: 'mail' } },
      routes: [
        { eventType: 'Mail*', to: 'mail', onFailure: 'skip' },
        { eventType: 'Order*', to: 'orders', onFailure: 'block' },
        { eventType: '*', to: 'orders' },
      ],
    }
    await writeFile(configFile, JSON.stringify(config))
    stack = await startLocalStack({ port: 0, relays: 0, configFile, log: () => undefined })
    const { databaseUrl, endpoint, resourceArn, secretArn } = stack.description
    database = new pg.Client({ connectionString: databaseUrl })
    await database.connect()
    clients = outboxClients(stack.description)
    environment = {
      AWS_ENDPOINT_URL: endpoint,
      AWS_ACCESS_KEY_ID: 'ann',
      AWS_SECRET_ACCESS_KEY: 'local',
      OUTBOX_CLUSTER_ARN: resourceArn,
      OUTBOX_SECRET_ARN: secretArn,
      OUTBOX_DATABASE: stack.description.database,
    }
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
  }, 60_000)
  afterEach(async () => {
    stack.faults.clear()
    await database.query('TRUNCATE outbox, outbox_delivery, outbox_receipt, outbox_audit')
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    clients.destroy()
    await database.end()
    await stack.stop()
    await rm(directory, { recursive: true, force: true })
  })

  const write = (type: string, key: string, n: number | string, availableAt = 'NULL') =>
    database.query(`INSERT INTO outbox (event_type, ordering_key, payload, available_at) VALUES ($1, $2, $3, ${availableAt})`, [
      type,
      key,
      JSON.stringify({ n }),
    ])
  const relay = async () => expect((await stack.invoke('relay')).error).toBeNull()
  const take = async (queue: string, count: number) =>
    (await clients.take(queue, count)).map((body) => (JSON.parse(body) as { data: { n: number } }).data.n)
  const statuses = async () => {
    const sql = 'SELECT payload, status FROM outbox_status JOIN outbox USING (id) ORDER BY outbox.created_at, id'
    const { rows } = await database.query<{ payload: string; status: string }>(sql)
    return Object.fromEntries(rows.map(({ payload, status }) => [(JSON.parse(payload) as { n: number }).n, status]))
  }
  /** The destination refuses the entry with this in it, for good. */
  const refuse = (match: string) =>
    stack.faults.set({
      seed: 1,
      rules: [{ service: 'sqs', match, fault: { kind: 'entry-error', code: 'InvalidMessageContents', senderFault: true } }],
    })
  const cli = async (...args: string[]) => {
    const terminal = fakeTerminal({ environment })
    const code = await runCli([...args, '--json'], terminal)
    expect({ code, err: terminal.errText() }).toEqual({ code: 0, err: '' })
    return JSON.parse(terminal.outText()) as Record<string, unknown>
  }
  const blocked = async () => ((await cli('list', '--blocked')) as { keys: { orderingKey: string; waiting: number }[] }).keys

  it.each(['OrderPaid', 'NoticeSent'])(
    'block, said or by default (%s): the key waits, is listed with what waits behind, and goes on in order once it is released',
    async (type) => {
      for (const n of [1, 2, 3]) await write(type, 'k', n === 1 ? 'bad' : n)
      await write(type, 'other', 4)
      refuse('bad')
      await relay()
      expect(await take('orders', 1)).toEqual([4])
      expect(await statuses()).toEqual({ bad: 'failed', 2: 'pending', 3: 'pending', 4: 'published' })
      expect(await blocked()).toMatchObject([{ orderingKey: 'k', waiting: 2 }])
      // what is written later waits too, also for another destination
      await write('MailWritten', 'k', 5)
      await relay()
      expect(await clients.waiting('mail')).toBe(0)
      expect(await blocked()).toMatchObject([{ orderingKey: 'k', waiting: 3 }])

      expect(await cli('release', '--key', 'k', '--reason', 'the first may be missing')).toMatchObject({ events: 1 })
      expect(await blocked()).toEqual([])
      await relay()
      expect(await take('orders', 2)).toEqual([2, 3])
      expect(await take('mail', 1)).toEqual([5])
      expect(await statuses()).toEqual({ bad: 'failed', 2: 'published', 3: 'published', 4: 'published', 5: 'published' })
    },
  )

  it('skip: the key goes on in order as soon as the failure is settled, and blocks nothing', async () => {
    for (const n of [1, 2, 3]) await write('MailWritten', 'k', n === 2 ? 'bad' : n)
    await write('OrderPaid', 'k', 4)
    refuse('bad')
    await relay()
    await expect
      .poll(async () => {
        await relay()
        return (await stack.state()).backlog.depth
      })
      .toBe(0)
    expect(await take('mail', 2)).toEqual([1, 3])
    expect(await take('orders', 1)).toEqual([4])
    expect(await statuses()).toEqual({ 1: 'published', bad: 'failed', 3: 'published', 4: 'published' })
    expect(await blocked()).toEqual([])
  })

  it('of a row that names its destination is that of the route which its type matches', async () => {
    const sql = `INSERT INTO outbox (event_type, ordering_key, payload, destination) VALUES ($1, 'k', $2, 'orders')`
    await database.query(sql, ['MailWritten', '{"n":"bad"}'])
    await database.query(sql, ['MailWritten', '{"n":2}'])
    refuse('bad')
    await relay()
    await relay()
    expect(await take('orders', 1)).toEqual([2])
    expect(await blocked()).toEqual([])
  })

  it('does not touch scheduled events: each comes at its time, and holds up nothing of its key until then', async () => {
    await write('OrderPaid', 'k', 1, `clock_timestamp() + interval '1 hour'`)
    await write('OrderPaid', 'k', 2)
    await write('OrderPaid', 'k', 3, `clock_timestamp() + interval '3 seconds'`)
    await relay()
    expect(await take('orders', 1)).toEqual([2])
    expect((await stack.state()).backlog).toMatchObject({ depth: 0, failed: 0 })
    await expect
      .poll(
        async () => {
          await relay()
          return clients.waiting('orders')
        },
        { timeout: 60_000 },
      )
      .toBe(1)
    expect(await take('orders', 1)).toEqual([3])
    const { rows } = await database.query<{ early: boolean }>(
      'SELECT r.delivered_at < o.available_at AS early FROM outbox o JOIN outbox_receipt r ON r.event_id = o.id WHERE o.available_at IS NOT NULL',
    )
    expect(rows).toEqual([{ early: false }])
    expect(await statuses()).toMatchObject({ 1: 'pending' })
  })
})
