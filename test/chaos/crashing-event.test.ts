import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { outboxClients } from '../support/outbox-clients.js'
import { outOfOrder, readQueue } from '../support/queue-reader.js'

const events = Number(process.env['OUTBOX_CRASH_EVENTS'] ?? 2000)
const keys = 200
const leaseSeconds = 25
/** What the relay had in hand comes one by one: of two batches, so many each. */
const claimRows = 200
/** Of a suspect, with a request timeout of 5 s. */
const suspectLeaseSeconds = 11

const handlers = fileURLToPath(new URL('../../dist/lambdas', import.meta.url))

/** What the test's own relays do when a request with this text leaves them. */
const poison = 'MUST-NOT-LEAVE'
const hook = (act: string) => `
import { OutgoingMessage } from 'node:http'
for (const method of ['write', 'end']) {
  const original = OutgoingMessage.prototype[method]
  OutgoingMessage.prototype[method] = function (chunk, ...rest) {
    if (chunk !== undefined && Buffer.from(chunk).includes(${JSON.stringify(poison)})) ${act}
    return original.call(this, chunk, ...rest)
  }
}
export { handler } from ${JSON.stringify(pathToFileURL(path.join(handlers, 'relay/index.mjs')).href)}
`

describe.each([
  ['makes the process exit', 'process.exit(1)'],
  ['blocks the process until it is killed', 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'],
])(`an event that %s, among ${events} others`, (_, act) => {
  let stack: LocalStack
  let database: pg.Client
  let directory: string
  const lines: string[] = []

  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'outbox-crashing-'))
    await chmod(directory, 0o755)
    for (const name of ['cleanup', 'monitor', 'canary', 'migrate'])
      await symlink(path.join(handlers, name), path.join(directory, name))
    await mkdir(path.join(directory, 'relay'))
    await writeFile(path.join(directory, 'relay/index.mjs'), hook(act))
    const configFile = path.join(directory, 'config.json')
    const routes = [{ eventType: '*', to: 'queue', onFailure: 'skip' }]
    const destinations = { queue: { type: 'sqs', queueUrl: 'https://sqs.us-east-1.amazonaws.com/000000000000/queue' } }
    await writeFile(configFile, JSON.stringify({ destinations, routes, leaseSeconds, passSeconds: 30, claimRows }))
    process.env['OUTBOX_HANDLERS'] = directory
    stack = await startLocalStack({ port: 0, relays: 2, configFile, periods: { relay: 8 }, log: (line) => lines.push(line) })
    database = new pg.Client({ connectionString: stack.description.databaseUrl })
    await database.connect()
  }, 120_000)
  afterAll(async () => {
    delete process.env['OUTBOX_HANDLERS']
    await database.end()
    await stack.stop()
    await rm(directory, { recursive: true, force: true })
  })

  const count = async (of: string) => (await database.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${of}`)).rows[0]!.n

  it('is failed with evidence after exactly three counted crashes; the others are delivered, in order per key, and within a lease but for its shard', async () => {
    // each lease that ran out, when another relay takes its shard over
    await database.query(
      `CREATE TABLE run_out (shard smallint);
       CREATE FUNCTION run_out() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO public.run_out VALUES (NEW.shard); RETURN NULL; END $$;
       CREATE TRIGGER run_out AFTER UPDATE ON outbox_shard FOR EACH ROW WHEN (OLD.lease_token <> NEW.lease_token) EXECUTE FUNCTION run_out()`,
    )
    // one of its own key stands in the middle, with others of its key behind it
    await database.query(
      `INSERT INTO outbox (event_type, payload, ordering_key)
       SELECT CASE WHEN i = $1::int / 2 THEN 'Poison' ELSE 'Made' END,
              CASE WHEN i = $1::int / 2 THEN '{"text": "${poison}"}'
                   ELSE json_build_object('key', i % $2::int, 'n', i / $2::int - CASE WHEN i % $2::int = $1::int / 2 % $2::int AND i > $1::int / 2 THEN 1 ELSE 0 END)::text END,
              'key-' || i % $2::int
         FROM generate_series(0, $1::int) i`,
      [events, keys],
    )
    const begunAt = performance.now()
    await expect
      .poll(() => count('outbox_shard WHERE lease_until <= now() AND cardinality(handed) > 0'), {
        timeout: 120_000,
        interval: 20,
      })
      .toBeGreaterThan(0)
    const crashedAt = performance.now() - leaseSeconds * 1000
    const inShard = `outbox_delivery d WHERE d.shard <> (SELECT p.shard FROM outbox_delivery p JOIN outbox o ON o.id = p.event_id WHERE o.event_type = 'Poison')`
    await expect.poll(() => count(inShard), { timeout: 240_000, interval: 50 }).toBe(0)
    const othersMs = performance.now() - crashedAt
    await expect.poll(() => count('outbox_delivery WHERE lane < 3'), { timeout: 180_000, interval: 50 }).toBe(0)
    const allMs = performance.now() - crashedAt
    console.log(
      `crash to others ${Math.round(othersMs)} ms, to all ${Math.round(allMs)} ms, begun ${Math.round(performance.now() - begunAt)} ms ago`,
    )
    expect(allMs).toBeGreaterThan((leaseSeconds + 3 * suspectLeaseSeconds) * 1000 - 1000)

    const { rows } = await database.query(
      'SELECT event_type, status, attempts, last_error_code, last_error FROM outbox_status WHERE failed_at IS NOT NULL',
    )
    expect(rows).toMatchObject([{ event_type: 'Poison', status: 'failed', attempts: 0, last_error_code: 'CrashedRelays' }])
    expect((rows[0] as { last_error: string }).last_error).toMatch(/^3 relays ended, .*the last one: [0-9a-f-]{36}/)
    expect(await count('outbox_receipt')).toBe(events)

    // whatever this machine's speed is: its shard waited for one lease and three short ones, another for one at most
    const { rows: waits } = await database.query<{ own: boolean; leases: number }>(
      `SELECT r.shard = (SELECT shard FROM outbox_delivery WHERE lane = 3) AS own, CAST(max(r.leases) AS integer) AS leases
         FROM (SELECT shard, count(*) AS leases FROM run_out GROUP BY shard) r GROUP BY 1 ORDER BY 1`,
    )
    expect(waits.filter(({ own, leases }) => leases > (own ? 4 : 1))).toEqual([])
    expect(waits.find(({ own }) => own)).toEqual({ own: true, leases: 4 })

    const suspected = lines.flatMap((line) => /"A relay ended with one event in hand".*"crashes":(\d)/.exec(line)?.[1] ?? [])
    expect(suspected).toEqual(['1', '2', '3'])
    const crashes = lines.flatMap((line) => /"CrashedRelays":(\d+)/.exec(line)?.[1] ?? [])
    expect(crashes.reduce((sum, n) => sum + Number(n), 0)).toBe(3)

    const clients = outboxClients(stack.description)
    const { endpoint, queues } = stack.description
    const waiting = await clients.waiting('queue')
    clients.destroy()
    const deliveries = await readQueue(endpoint, queues['queue']!, ({ length }) => length >= waiting, 120_000)
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(events)
    expect(outOfOrder(deliveries)).toEqual([])
    // what was in hand may be doubled once, whatever was served alone is not
    expect(deliveries.length - events).toBeLessThanOrEqual(2 * claimRows)
  }, 500_000)
})
