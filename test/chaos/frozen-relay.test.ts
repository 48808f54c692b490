import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { startLocalStack, type FaultSetting, type LocalStack } from '../../src/local/stack.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'
import { outOfOrder, readQueue, type Delivery } from '../support/queue-reader.js'

const events = 60
const keys = 12
interface Totals {
  readonly published: number
}

/** The least that may be configured. */
const leaseSeconds = 15

describe('a relay process that is frozen', () => {
  let directory: string
  let stack: LocalStack
  let database: pg.Client
  let clients: OutboxClients
  const lines: string[] = []
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outbox-frozen-test-'))
    const configFile = join(directory, 'config.json')
    const settings = { leaseSeconds, passSeconds: 5, requestTimeoutMs: 7000, maxShards: 16 }
    await writeFile(
      configFile,
      JSON.stringify({ destinations: { queue: { type: 'sqs', queueUrl: 'queue' } }, default: 'queue', ...settings }),
    )
    const periods = { relay: 86_400, monitor: 86_400, cleanup: 86_400 }
    stack = await startLocalStack({ port: 0, relays: 1, configFile, periods, log: (line) => lines.push(line) })
    database = new pg.Client({ connectionString: stack.description.databaseUrl })
    await database.connect()
    clients = outboxClients(stack.description)
    // the invocation that every relay begins with
    await vi.waitFor(() => expect(lines.some((line) => line.includes('PassCompleted'))).toBe(true), { timeout: 60_000 })
  }, 120_000)
  afterEach(() => stack.faults.clear())
  afterAll(async () => {
    clients.destroy()
    await database.end()
    await stack.stop()
    await rm(directory, { recursive: true, force: true })
  })

  const write = (moment: string) =>
    database.query(
      `INSERT INTO outbox (event_type, payload, ordering_key)
       SELECT $1, json_build_object('key', i % $2::int, 'n', i / $2::int)::text, $1 || i % $2::int FROM generate_series(0, $3::int - 1) i`,
      [moment, keys, events],
    )
  /** Everything that a relay may change, down to the version of each row; but for the locking of shards, which changes nothing. */
  const rows = async () => {
    const { rows: all } = await database.query<Record<'of' | 'id' | 'version', string>>(
      `SELECT 'queue' AS of, event_id::text AS id, xmin::text AS version FROM outbox_delivery UNION ALL
       SELECT 'receipt', event_id::text, xmin::text FROM outbox_receipt UNION ALL
       SELECT 'shard', shard::text, concat(lease_token, lease_until, settled_token) FROM outbox_shard ORDER BY 1, 2`,
    )
    return all
  }
  const count = async (of: string) => (await database.query(`SELECT FROM ${of}`)).rowCount ?? 0
  const faulty = (...rules: readonly object[]) => stack.faults.set({ seed: 1, rules } as unknown as FaultSetting)
  const hits = () => stack.faults.get().rules.reduce((sum, rule) => sum + rule.hits, 0)
  const emitted = (logs: readonly string[], metric: string) =>
    logs
      .map((line) => (line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>)[metric] : undefined))
      .filter((value) => value !== undefined)
      .flat()
      .reduce<number>((sum, value) => sum + Number(value), 0)

  const onQueue = (fault: object) => ({ service: 'sqs', operation: 'SendMessageBatch', times: 1, fault })
  const onDatabase = (match: string, fault: object) => ({ service: 'rds-data', match, times: 1, fault })
  /** So far beyond the lease that what was sent before the freeze arrives after another relay has sent all, on a busy machine too. */
  const afterLeaseMs = (leaseSeconds + 35) * 1000

  it.each([
    ['with a claim on its way', [onDatabase('outbox_claim', { kind: 'latency', ms: 2000 })], 'none'],
    ['in the middle of a request that is accepted meanwhile', [onQueue({ kind: 'latency', ms: 2000 })], 'early'],
    ['in the middle of a request that arrives when all is over', [onQueue({ kind: 'latency', ms: afterLeaseMs })], 'late'],
    [
      'with a settlement on its way that never arrives',
      [onDatabase('outbox_settle', { kind: 'latency', ms: 2000 }), onDatabase('outbox_settle', { kind: 'reset' })],
      'early',
    ],
  ] as const)(
    '%s, past its lease: thawed, it changes nothing, and counts the lease that it lost',
    async (moment, rules, doubles) => {
      const { endpoint, queues } = stack.description
      const [relay] = (await stack.state()).relays
      await write(moment)
      faulty(...rules)
      const zombie = stack.invokeRelay('relay-1')
      await expect.poll(() => hits(), { timeout: 60_000, interval: 5 }).toBe(rules.length)
      expect(stack.signalRelay(relay!.pid, 'SIGSTOP')).toBe('sent')
      await expect.poll(() => count('outbox_shard WHERE lease_token IS NOT NULL'), { timeout: 60_000 }).toBeGreaterThan(0)

      // nobody takes over before the lease is over (on a busy machine the heir may be invoked so late that it is)
      const heir = async () => ((await stack.invoke('relay')).result as Totals).published
      let published = await heir()
      const leased = () => count('outbox_shard WHERE lease_token IS NOT NULL AND lease_until > clock_timestamp()')
      if ((await leased()) > 0) expect(published).toBe(0)
      await expect.poll(leased, { timeout: 60_000 }).toBe(0)
      const drained = async () => {
        published += await heir()
        return count('outbox_delivery')
      }
      await expect.poll(drained, { timeout: 60_000 }).toBe(0)
      const before = await rows()

      const arrived = await clients.waiting('queue')
      if (doubles === 'late') await expect.poll(() => clients.waiting('queue'), { timeout: 60_000 }).toBeGreaterThan(arrived)
      stack.signalRelay(relay!.pid, 'SIGCONT')
      const { logs } = await zombie
      // of a claim whose answer it never had it knows no shards
      expect(emitted(logs, 'LeaseLost') > 0).toBe(doubles !== 'none')
      expect(logs.some((line) => line.includes('"noticedBy"'))).toBe(doubles !== 'none')
      // each is counted once, whatever was sent twice
      expect(emitted(logs, 'Published') + published).toBe(events)
      expect(await rows()).toEqual(before)

      const waiting = await clients.waiting('queue')
      const deliveries = await readQueue(endpoint, queues['queue']!, ({ length }) => length >= waiting)
      expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(events)
      expect(outOfOrder(deliveries)).toEqual([])
      expect(doubled(deliveries) > 0).toBe(doubles !== 'none')
    },
  )

  it('between two invocations, as Lambda does it: thawed for the next one, it holds nothing and delivers', async () => {
    const { endpoint, queues } = stack.description
    expect((await stack.invokeRelay('relay-1')).error).toBeNull()
    const [relay] = (await stack.state()).relays
    stack.signalRelay(relay!.pid, 'SIGSTOP')
    const frozenAtMs = performance.now()
    expect(await count('outbox_shard WHERE lease_token IS NOT NULL')).toBe(0)
    // the endpoint closes connections that were idle for 5 s
    await expect.poll(() => performance.now() - frozenAtMs, { timeout: 60_000 }).toBeGreaterThan(7000)
    await write('frozen between')
    stack.signalRelay(relay!.pid, 'SIGCONT')
    const { error, result } = await stack.invokeRelay('relay-1')
    expect(error).toBeNull()
    expect(result).toMatchObject({ published: events, leaseLost: 0 })
    expect((await stack.state()).relays[0]!.pid).toBe(relay!.pid)
    const deliveries = await readQueue(endpoint, queues['queue']!, ({ length }) => length >= events)
    expect(doubled(deliveries)).toBe(0)
    expect(outOfOrder(deliveries)).toEqual([])
  })
})

function doubled(deliveries: readonly Delivery[]): number {
  return deliveries.length - new Set(deliveries.map(({ eventId }) => eventId)).size
}
