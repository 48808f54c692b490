import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { schemaSql } from '../../src/store/postgres/schema-sql.js'
import { freshDatabase, type FreshDatabase } from '../support/postgres.js'

/** The write that both documents begin with. */
const minimalInsert = /^INSERT INTO outbox .*$/m.exec(readFileSync(new URL('../../README.md', import.meta.url), 'utf8'))![0]

let database: FreshDatabase
let user: string
/** A service's own login user: owner of its tables, member of `outbox_writer`, nothing else. */
let service: pg.Client

beforeAll(async () => {
  database = await freshDatabase('plain_sql')
  await database.query(schemaSql({ schema: 'public' }))
  await database.query(schemaSql({ schema: 'billing' }))
  user = `plain_${database.name}`
  await database.query(`CREATE ROLE ${user} LOGIN`)
  await database.query(`GRANT outbox_writer TO ${user}`)
  await database.query(`CREATE SCHEMA shop AUTHORIZATION ${user}`)
  service = await database.connect(user)
  await service.query('CREATE TABLE shop.orders (id bigint PRIMARY KEY)')
  afterAll(async () => {
    await service.end()
    await database.query(`DROP OWNED BY ${user}`)
    await database.query(`DROP ROLE ${user}`)
  })
})
beforeEach(async () => {
  await database.query('TRUNCATE outbox, outbox_delivery, shop.orders')
})

const count = async (table: string): Promise<number> =>
  Number((await database.query<{ rows: string }>(`SELECT count(*) AS rows FROM ${table}`))[0]?.rows)
const left = async () => ({
  orders: await count('shop.orders'),
  events: await count('outbox'),
  queued: await count('outbox_delivery'),
})
const sqlState = (query: Promise<unknown>): Promise<string> =>
  query.then(
    () => 'ok',
    (error: unknown) => (error as pg.DatabaseError).code ?? 'no code',
  )
const denied = '42501'

describe('A service that writes plain SQL', () => {
  test('writes the minimal insert of README, which docs/writing.md shows too', async () => {
    expect(readFileSync(new URL('../../docs/writing.md', import.meta.url), 'utf8')).toContain(`\n${minimalInsert}\n`)
    expect(minimalInsert).toBe(`INSERT INTO outbox (event_type, payload) VALUES ('OrderCreated', '{"orderId": 42}')`)
    await service.query(minimalInsert)
    const [row] = await database.query('SELECT * FROM outbox')
    expect(row).toMatchObject({ event_type: 'OrderCreated', payload: '{"orderId": 42}', event_version: 1, ordering_key: null })
    expect(row?.['id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(await left()).toMatchObject({ events: 1, queued: 1 })
  })

  test('gives plain strings to every column but id and available_at, without a cast', async () => {
    const id = '0197f3a2-0000-7000-8000-000000000000'
    await service.query(
      `INSERT INTO outbox (id, event_type, event_version, aggregate_type, aggregate_id, ordering_key, destination, headers, payload,
         idempotency_key, available_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
      [id, 'A', 2, 'order', '42', 'k', 'queue', '{"tenant":"t1"}', '{"a": 1e2}', 'once', '2030-01-02T03:04:05Z'],
    )
    expect(await database.query('SELECT id, headers, payload, available_at FROM outbox')).toEqual([
      { id, headers: '{"tenant":"t1"}', payload: '{"a": 1e2}', available_at: new Date('2030-01-02T03:04:05Z') },
    ])
  })

  test('gets the id back, and skips an event whose idempotency key exists', async () => {
    const sql = `INSERT INTO outbox (event_type, payload, idempotency_key) VALUES ('A', '{}', $1) ON CONFLICT DO NOTHING RETURNING id`
    const first = await service.query<{ id: string }>(sql, ['payment-7'])
    expect(first.rows).toHaveLength(1)
    expect((await service.query(sql, ['payment-7'])).rows).toEqual([])
    const found = await service.query('SELECT id FROM outbox WHERE idempotency_key = $1', ['payment-7'])
    expect(found.rows).toEqual(first.rows)
    expect(await left()).toMatchObject({ events: 1, queued: 1 })
  })

  test('is refused a second event with that key if it does not ask for the skip', async () => {
    const sql = `INSERT INTO outbox (event_type, payload, idempotency_key) VALUES ('A', '{}', 'payment-7')`
    await service.query(sql)
    await expect(service.query(sql)).rejects.toMatchObject({ code: '23505', constraint: 'outbox_idempotency_key' })
  })

  test.each(['COMMIT', 'ROLLBACK'] as const)('leaves business row and events together: %s', async (end) => {
    await service.query('BEGIN')
    await service.query('INSERT INTO shop.orders (id) VALUES (42)')
    await service.query(minimalInsert)
    await service.query(`INSERT INTO outbox (event_type, payload, ordering_key) VALUES ('A', '1', 'k'), ('B', '2', 'k')`)
    expect(await left()).toEqual({ orders: 0, events: 0, queued: 0 })
    await service.query(end)
    expect(await left()).toEqual(end === 'COMMIT' ? { orders: 1, events: 3, queued: 3 } : { orders: 0, events: 0, queued: 0 })
  })

  test('rolls its business row back with an event that is refused', async () => {
    await service.query('BEGIN')
    await service.query('INSERT INTO shop.orders (id) VALUES (42)')
    const twiceEncoded = JSON.stringify(JSON.stringify({ orderId: 42 }))
    const insert = service.query(`INSERT INTO outbox (event_type, payload) VALUES ('A', $1)`, [twiceEncoded])
    await expect(insert).rejects.toMatchObject({ code: '23514', constraint: 'outbox_payload_json_not_string' })
    // PostgreSQL makes a rollback of it
    expect((await service.query('COMMIT')).command).toBe('ROLLBACK')
    expect(await left()).toEqual({ orders: 0, events: 0, queued: 0 })
  })

  test('can write many in one statement, each of which is queued', async () => {
    await service.query(
      `INSERT INTO outbox (event_type, payload) SELECT 'Imported', json_build_object('n', n)::text FROM generate_series(1, 1000) n`,
    )
    expect(await left()).toMatchObject({ events: 1000, queued: 1000 })
  })

  test('writes into an outbox of another schema by its name, or by the search path', async () => {
    await service.query(minimalInsert.replace('outbox', 'billing.outbox'))
    await service.query('BEGIN')
    await service.query('SET LOCAL search_path = billing')
    await service.query(minimalInsert)
    await service.query('COMMIT')
    expect([await count('billing.outbox'), await count('billing.outbox_delivery'), await count('outbox')]).toEqual([2, 2, 0])
  })
})

describe('A user who has outbox_writer alone', () => {
  beforeEach(async () => {
    await database.query(`INSERT INTO outbox (event_type, payload) VALUES ('Secret', '{"of":"another service"}')`)
  })

  test.each<[string, string]>([
    ['read payloads', 'SELECT payload FROM outbox'],
    ['read any other column', 'SELECT event_type FROM outbox'],
    ['read whole rows', 'SELECT * FROM outbox'],
    ['read by a condition', `SELECT id FROM outbox WHERE payload LIKE '%another%'`],
    ['copy rows out', 'COPY outbox TO STDOUT'],
    ['get more than the id back', `INSERT INTO outbox (event_type, payload) VALUES ('A', '1') RETURNING payload`],
    ['lock rows', 'SELECT id FROM outbox FOR UPDATE'],
    ['lock the table against others', 'DO $$ BEGIN LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE; END $$'],
    ['read the view of states', 'SELECT id FROM outbox_status'],
    ['read the queue', 'SELECT event_id FROM outbox_delivery'],
    ['read receipts', 'SELECT event_id FROM outbox_receipt'],
    ['read leases', 'SELECT shard FROM outbox_shard'],
    ['read what the schema is', 'SELECT installation FROM outbox_meta'],
    ['update', `UPDATE outbox SET payload = '1'`],
    [
      'update by a conflict',
      `INSERT INTO outbox (event_type, payload) VALUES ('A', '1') ON CONFLICT (id) DO UPDATE SET payload = '2'`,
    ],
    ['delete', 'DELETE FROM outbox'],
    ['truncate', 'TRUNCATE outbox'],
    ['queue an event by hand', 'INSERT INTO outbox_delivery DEFAULT VALUES'],
    ['write a receipt', 'INSERT INTO outbox_receipt DEFAULT VALUES'],
    ['take numbers of the queue', `SELECT nextval('outbox_delivery_seq')`],
    ['alter the table', 'ALTER TABLE outbox DISABLE TRIGGER outbox_enqueue'],
    ['add a trigger', 'CREATE TRIGGER mine AFTER INSERT ON outbox EXECUTE FUNCTION suppress_redundant_updates_trigger()'],
    ['drop the table', 'DROP TABLE outbox'],
    ['claim', `SELECT * FROM outbox_claim(gen_random_uuid(), 'x', 10, 1000, 1, 1, 1, NULL)`],
    ['settle', `SELECT * FROM outbox_settle(gen_random_uuid(), '[]', '[]', NULL)`],
    ['clean up', 'SELECT outbox_cleanup(1, 1)'],
    ['redrive', `SELECT outbox_operate('redrive', '{}', 1, false, 'a', 'b')`],
    ['lock ordering keys', `SELECT outbox_lock_keys('{a}')`],
    ['read payloads in chunks', 'SELECT * FROM outbox_payload_chunks(gen_random_uuid(), 0, 1, 1)'],
    ['become the relay', 'SET ROLE outbox_relay'],
  ])('may not %s', async (_what, sql) => {
    expect(await sqlState(service.query(sql))).toBe(denied)
    expect(await database.query('SELECT payload FROM outbox')).toEqual([{ payload: '{"of":"another service"}' }])
    expect(await left()).toMatchObject({ events: 1, queued: 1 })
  })

  test('may not call any function of the outbox but the one that makes ids', async () => {
    const callable = await service.query<{ name: string }>(
      `SELECT p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'public' AND p.proname LIKE 'outbox%' AND has_function_privilege(p.oid, 'EXECUTE')`,
    )
    expect(callable.rows.map(({ name }) => name)).toEqual(['outbox_event_id'])
  })

  test('sees of other events which ids and idempotency keys there are, which ON CONFLICT and RETURNING need', async () => {
    expect((await service.query('SELECT id, idempotency_key FROM outbox')).rowCount).toBe(1)
  })
})

test('A user without the role is refused, with the SQLSTATE that docs/writing.md names', async () => {
  await database.query(`REVOKE outbox_writer FROM ${user}`)
  try {
    expect(await sqlState(service.query(minimalInsert))).toBe(denied)
  } finally {
    await database.query(`GRANT outbox_writer TO ${user}`)
  }
})
