import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack, type LocalState } from '../../src/local/stack.js'
import { discardLocalProcesses, startLocalProcess } from '../support/local-process.js'
import { isAlive } from '../../src/local/postgres/children.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

interface Invoked {
  readonly result: Readonly<Record<string, unknown>> | null
  readonly error: { readonly name: string; readonly message: string } | null
  readonly logs: readonly string[]
}

describe('a local stack', () => {
  let stack: LocalStack
  let clients: OutboxClients
  const lines: string[] = []
  const call = (path: string, method = 'GET', body?: string) =>
    fetch(`${stack.description.endpoint}/_local/${path}`, { method, ...(body === undefined ? {} : { body }) })
  const invoke = async (handler: string): Promise<Invoked> => (await call(`invoke/${handler}`, 'POST')).json() as Promise<Invoked>

  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 2, log: (line) => lines.push(line) })
    clients = outboxClients(stack.description)
  })
  afterEach(() => stack.faults.clear())
  afterAll(async () => {
    clients.destroy()
    await stack.stop()
  })

  it('has a database that plain SQL clients reach, with functions that have no more rights than in an account', async () => {
    const client = new pg.Client(stack.description.databaseUrl)
    await client.connect()
    const users = await client.query<{ usename: string; writes: boolean }>(
      "SELECT rolname AS usename, has_table_privilege(rolname, 'outbox_delivery', 'UPDATE') AS writes FROM pg_roles WHERE rolname LIKE 'local_%' ORDER BY 1",
    )
    await client.end()
    expect(users.rows).toEqual(
      ['canary', 'cleanup', 'monitor', 'relay'].map((name) => ({ usename: `local_${name}`, writes: false })),
    )
  })

  it('lets an event for a destination that is not configured wait, visible, while others flow', async () => {
    await clients.insert('LostNews', '{"n":1}', 'nowhere')
    await clients.insert('QueueNews', '{"n":2}', 'queue')
    expect((await clients.take('queue', 1))[0]).toContain('"data":{"n":2}')
    // received is not yet settled
    await expect.poll(async () => (await stack.state()).backlog).toMatchObject({ depth: 1, failed: 0 })
    const { backlog } = await stack.state()
    expect(backlog.ageSeconds).toBeGreaterThan(0)
    await clients.execute("DELETE FROM outbox_delivery WHERE event_id IN (SELECT id FROM outbox WHERE event_type = 'LostNews')")
  })

  it('invokes each handler on demand, with its result and its log lines', async () => {
    const monitor = await invoke('monitor')
    expect(monitor.error).toBeNull()
    expect(monitor.result).toMatchObject({ depth: 0, failed: 0 })
    expect(monitor.logs.some((line) => line.includes('"BacklogAge"') && line.includes('CloudWatchMetrics'))).toBe(true)
    expect((await invoke('cleanup')).result).toMatchObject({ deleted: 0 })
    expect((await invoke('migrate')).result).toMatchObject({ installation: 'local' })
    expect((await invoke('relay')).error).toBeNull()
    expect(lines.some((line) => line.startsWith('monitor {'))).toBe(true)
  })

  it('goes on delivering when a relay is killed, and when one is frozen', async () => {
    const [first, second] = (await stack.state()).relays
    expect(stack.signalRelay(first!.pid, 'SIGKILL')).toBe('sent')
    await expect.poll(() => isAlive(first!.pid)).toBe(false)
    expect((await stack.state()).relays.map(({ name }) => name)).toEqual([second!.name])
    expect(stack.signalRelay(first!.pid, 'SIGKILL')).toBe('gone')
    await clients.insert('AfterKill', '{"n":3}', 'queue')
    await clients.take('queue', 1)

    const back = stack.invokeRelay(first!.name)
    await expect.poll(async () => (await stack.state()).relays.length).toBe(2)
    stack.signalRelay(second!.pid, 'SIGSTOP')
    await clients.insert('WhileFrozen', '{"n":4}', 'queue')
    await clients.take('queue', 1)
    stack.signalRelay(second!.pid, 'SIGCONT')
    expect(() => stack.invokeRelay('relay-9')).toThrow('relay is "relay-9"; allowed: relay-1, relay-2')
    void back
  })

  it.each<[string, string, string | undefined, number, string]>([
    ['PUT', 'faults', '{', 400, 'the body is not JSON'],
    ['PUT', 'faults', '[]', 400, 'the body is []: Invalid input: expected object, received array'],
    [
      'PUT',
      'faults',
      '{"rules":[{"service":"s3","fault":{"kind":"reset"}}]}',
      400,
      'rules[0].service is "s3": Invalid option: expected one of "sqs"|"sns"|"events"|"rds-data"|"secretsmanager"',
    ],
    ['PUT', 'faults', '{"rules":[{"service":"sqs","fault":{"kind":"reset"},"rate":2}]}', 400, 'rules[0].rate is 2: Too big'],
    [
      'PUT',
      'faults',
      '{"rules":[{"service":"sqs","fault":{"kind":"boom"}}]}',
      400,
      "rules[0].fault.kind is \"boom\": Invalid discriminator value. Expected 'error' | 'throttle'",
    ],
    ['PUT', 'faults', '{"rules":[{"service":"sqs","fault":{"kind":"latency"}}]}', 400, 'rules[0].fault.ms is absent'],
    ['PUT', 'faults', '{"rulez":[],"rules":[]}', 400, 'rulez is []: Unrecognized key'],
    ['POST', 'invoke/doctor', undefined, 400, 'handler is "doctor"; allowed: relay, cleanup, monitor, migrate'],
    ['POST', 'invoke/monitor', 'x', 400, 'the body is not JSON'],
    ['GET', 'stat', undefined, 404, 'GET /_local/stat does not exist; there are'],
  ])('%s /_local/%s %s is answered %i: %s', async (method, path, body, status, error) => {
    const answer = await call(path, method, body)
    expect(answer.status).toBe(status)
    expect(((await answer.json()) as { error: string }).error).toContain(error)
  })

  it('gives back the fault rules with their hits, and clears them', async () => {
    const rule = { service: 'sqs', operation: 'SendMessageBatch', rate: 0.5, times: 5, match: 'x', fault: { kind: 'throttle' } }
    const set = { seed: 9, rules: [{ ...rule, hits: 0 }] }
    expect(await (await call('faults', 'PUT', JSON.stringify({ seed: 9, rules: [rule] }))).json()).toEqual(set)
    expect(await (await call('faults')).json()).toEqual(set)
    expect(await (await call('faults', 'DELETE')).json()).toEqual({ seed: 9, rules: [] })
  })
})

describe('a local stack of its own configuration', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outbox-stack-test-'))
    // as root, PostgreSQL runs as another user, who must be able to enter it
    await chmod(directory, 0o755)
  })
  afterAll(async () => {
    await discardLocalProcesses()
    await rm(directory, { recursive: true, force: true })
  })
  const quiet = { port: 0, relays: 0, log: () => undefined } as const
  const write = async (name: string, content: unknown) => {
    const file = join(directory, name)
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
    return file
  }

  it('creates the destinations of --config, however they are named, and takes routes and settings from it', async () => {
    const configFile = await write('config.json', {
      destinations: {
        orders: { type: 'eventbridge', eventBusName: 'arn:aws:events:eu-west-1:111122223333:event-bus/orders-bus' },
        mail: { type: 'sqs', queueUrl: 'https://sqs.eu-west-1.amazonaws.com/111122223333/mail-out.fifo', format: 'raw' },
        audit: { type: 'sqs', queueUrl: 'audit' },
      },
      routes: [{ eventType: 'Mail*', to: 'mail' }],
      default: 'orders',
      source: 'shop',
      maxAttempts: 3,
    })
    const stack = await startLocalStack({ ...quiet, configFile })
    const clients = outboxClients(stack.description)
    try {
      expect(stack.description.eventBusName).toBe('orders-bus')
      const { endpoint } = stack.description
      expect(stack.description.queues).toEqual({
        mail: `${endpoint}/000000000000/mail-out.fifo`,
        audit: `${endpoint}/000000000000/audit`,
        'orders-target': `${endpoint}/000000000000/orders-target`,
      })
      await clients.insert('MailWritten', '{"to":"x"}')
      await clients.insert('OrderCreated', '{"n":1}')
      await clients.insert('OrderCreated', '{"n":2}', 'audit')
      await stack.invoke('relay')
      expect(await clients.take('mail', 1)).toEqual(['{"to":"x"}'])
      expect((await clients.take('orders-target', 1))[0]).toContain('"source":"shop"')
      await clients.take('audit', 1)
    } finally {
      clients.destroy()
      await stack.stop()
    }
  })

  it.each<[string, unknown, string]>([
    ['is not JSON', '{', 'is not JSON'],
    ['is no object', [], 'must be a JSON object'],
    [
      'has a setting that does not exist',
      { retries: 3 },
      'retries is no setting (allowed: destinations, source, routes, default, profile',
    ],
    ['decides where the database is', { resourceArn: 'x' }, 'resourceArn is no setting'],
    ['has a value out of range', { maxAttempts: 0 }, 'maxAttempts is wrong: Too small: expected number to be >=1. Seen: 0'],
    ['has a destination of no type', { destinations: { a: { type: 'kafka' } } }, 'destinations.a.type is wrong'],
    ['has a destination without its queue', { destinations: { a: { type: 'sqs' } } }, 'destinations.a.queueUrl is wrong'],
  ])('refuses a configuration that %s', async (what, content, message) => {
    const configFile = await write(`${what}.json`, content)
    await expect(startLocalStack({ ...quiet, configFile })).rejects.toThrow(message)
  })

  it('refuses a file that is not there, and an engine that is not there yet', async () => {
    await expect(startLocalStack({ ...quiet, configFile: join(directory, 'no.json') })).rejects.toThrow('cannot be read: ENOENT')
    await expect(startLocalStack({ ...quiet, engine: 'mysql' })).rejects.toThrow(
      'engine is "mysql", which is not available yet; allowed: postgres',
    )
  })

  it('keeps the database across restarts with --data, even after it was killed, and then leaves nothing else behind', async () => {
    const data = join(directory, 'data')
    const first = await startLocalProcess('--relays', '1', '--data', data)
    const before = outboxClients(first.description)
    await before.insert('Kept', '{"n":1}', 'nowhere')
    await before.insert('Delivered', '{"n":2}', 'queue')
    // so the relay is at work when its stack is killed
    await before.take('queue', 1)
    before.destroy()
    const backlog = async () =>
      ((await (await fetch(`${first.description.endpoint}/_local/state`)).json()) as LocalState).backlog.depth
    await expect.poll(backlog).toBe(1)
    expect(await first.end('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' })
    await expect.poll(() => first.leftovers(), { timeout: 10_000 }).toEqual([])

    const second = await startLocalProcess('--relays', '0', '--data', data)
    const after = outboxClients(second.description)
    const { records } = await after.execute('SELECT event_type FROM outbox_status WHERE status <> :published', {
      published: 'published',
    })
    expect(records).toEqual([[{ stringValue: 'Kept' }]])
    after.destroy()
    expect(await second.end('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(await second.leftovers()).toEqual([])
  })
})
