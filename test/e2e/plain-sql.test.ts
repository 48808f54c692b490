import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LocalState } from '../../src/local/stack.js'
import { discardLocalProcesses, startLocalProcess, type LocalProcess } from '../support/local-process.js'
import { readQueue } from '../support/queue-reader.js'

let directory: string
const clients: pg.Client[] = []
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'outbox-plain-sql-test-'))
  // as root, PostgreSQL runs as another user, who must be able to enter it
  await chmod(directory, 0o755)
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end().catch(() => undefined)))
  await discardLocalProcesses()
  await rm(directory, { recursive: true, force: true })
})

/** Plain SQL, as `psql "$databaseUrl"` speaks it; as another user, if one is named. */
async function connect({ description }: LocalProcess, user?: string): Promise<pg.Client> {
  const url = new URL(description.databaseUrl)
  if (user !== undefined) url.username = user
  const client = new pg.Client({ connectionString: url.href })
  // the server ends it with the stack
  client.on('error', () => undefined)
  clients.push(client)
  await client.connect()
  return client
}

const stateOf = async ({ description }: LocalProcess): Promise<LocalState> =>
  (await (await fetch(`${description.endpoint}/_local/state`)).json()) as LocalState

describe('outbox local --data', () => {
  it('delivers after its next start what plain SQL had committed before its stop, once, and nothing else', async () => {
    const data = join(directory, 'data')
    const first = await startLocalProcess('--relays', '0', '--data', data)
    const owner = await connect(first)
    await owner.query('CREATE ROLE shop LOGIN')
    await owner.query('GRANT outbox_writer TO shop')
    await owner.query('CREATE SCHEMA AUTHORIZATION shop')
    await owner.query('CREATE TABLE shop.orders (id bigint PRIMARY KEY)')
    await owner.query('ALTER TABLE shop.orders OWNER TO shop')

    const shop = await connect(first, 'shop')
    const ids: string[] = []
    for (let order = 1; order <= 3; order++) {
      await shop.query('BEGIN')
      await shop.query('INSERT INTO shop.orders (id) VALUES ($1)', [order])
      const { rows } = await shop.query<{ id: string }>(
        'INSERT INTO outbox (event_type, payload, ordering_key, destination) VALUES ($1, $2, $3, $4) RETURNING id',
        ['OrderCreated', JSON.stringify({ order }), 'customer-7', 'fifo'],
      )
      await shop.query('COMMIT')
      ids.push(rows[0]!.id)
    }
    await shop.query(`INSERT INTO outbox (event_type, payload) VALUES ('OrderCreated', '{"orderId": 42}')`)
    const undecided = await connect(first, 'shop')
    await undecided.query('BEGIN')
    await undecided.query('INSERT INTO shop.orders (id) VALUES (4)')
    await undecided.query(`INSERT INTO outbox (event_type, payload) VALUES ('OrderCreated', '{"order":4}')`)
    expect((await stateOf(first)).backlog).toMatchObject({ depth: 4, failed: 0 })
    expect(await first.end('SIGTERM')).toEqual({ code: 0, signal: null })

    const second = await startLocalProcess('--relays', '1', '--data', data)
    const delivered = await readQueue(second.description.endpoint, second.description.queues['fifo']!, (all) => all.length === 3)
    expect(delivered).toEqual(ids.map((eventId, index) => ({ eventId, orderingKey: 'customer-7', data: { order: index + 1 } })))
    // received is not yet settled
    await expect.poll(async () => (await stateOf(second)).backlog.depth).toBe(0)
    const again = await connect(second, 'shop')
    expect((await again.query('SELECT id FROM shop.orders ORDER BY id')).rows).toEqual([{ id: '1' }, { id: '2' }, { id: '3' }])
    await expect(again.query('SELECT payload FROM outbox')).rejects.toMatchObject({ code: '42501' })
    expect(await second.end('SIGTERM')).toEqual({ code: 0, signal: null })

    const third = await startLocalProcess('--relays', '0', '--data', data)
    const reader = await connect(third)
    const { rows } = await reader.query('SELECT destination, status, count(*) FROM outbox_status GROUP BY 1, 2 ORDER BY 1')
    expect(rows).toEqual([
      { destination: 'bus', status: 'published', count: '1' },
      { destination: 'fifo', status: 'published', count: '3' },
    ])
    expect(await third.end('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(await third.leftovers()).toEqual([])
  })
})
