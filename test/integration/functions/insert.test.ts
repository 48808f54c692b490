import { beforeEach, expect, test } from 'vitest'
import { add, drain, emptyOutbox, outboxDatabase, queued, sqlStateOf } from '../../support/outbox-sql.js'

const database = await outboxDatabase('insert')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

test.each([
  ['a payload that was encoded twice', 'payload', `'"{\\"a\\":1}"'`, '23514'],
  ['a payload that is not JSON', 'payload', `'{a}'`, '22P02'],
  ['no payload', 'payload', 'NULL', '23502'],
  ['headers that are an array', 'payload, headers', `'{}', '[1]'`, '23514'],
  ['headers that are a string', 'payload, headers', `'{}', '"x"'`, '23514'],
  ['headers that are null', 'payload, headers', `'{}', 'null'`, '23514'],
  ['headers that are not JSON', 'payload, headers', `'{}', '{'`, '22P02'],
  ['headers over 8 kB', 'payload, headers', `'{}', json_build_object('h', repeat('x', 8190))`, '23514'],
  ['an empty ordering key', 'payload, ordering_key', `'{}', ''`, '23514'],
  ['a created_at of infinity, which no claim could return', 'payload, created_at', `'{}', 'infinity'`, '23514'],
])('%s is refused', async (_, columns, values, sqlState) => {
  expect(await sqlStateOf(session.query(`INSERT INTO outbox (event_type, ${columns}) VALUES ('t', ${values})`))).toBe(sqlState)
})

test.each([
  ['a number', `'42'`],
  ['null', `'null'`],
  ['an escaped U+0000', `'{"a":"\\u0000"}'`],
])('a payload may be %s, and comes back as it was', async (_, payload) => {
  await session.query(`INSERT INTO outbox (event_type, payload) VALUES ('t', ${payload})`)
  expect((await drain(session)).map((event) => `'${event.payload}'`)).toEqual([payload])
})

test('an idempotency key is taken once, and whoever skips conflicts queues only what was inserted', async () => {
  const insert = (keys: string, rest = '') =>
    session.query(`INSERT INTO outbox (event_type, payload, idempotency_key) VALUES ${keys} ${rest}`)
  await insert(`('t', '1', 'x')`)
  expect(await sqlStateOf(insert(`('t', '1', 'x')`))).toBe('23505')
  expect(await insert(`('t', '1', 'x'), ('t', '1', 'y')`, 'ON CONFLICT DO NOTHING RETURNING id')).toHaveLength(1)
  expect(await queued(session)).toBe(2)
})

test('ids are UUIDs of version 7 that carry the present time', async () => {
  await add(session, 1)
  const id = await session.one<string>('SELECT CAST(id AS text) FROM outbox')
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(Math.abs(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) - Date.now())).toBeLessThan(60_000)
})

test('a key has always the same shard, because it is hashed into the data', async () => {
  const shards = await session.query(`SELECT outbox_key_shard(k) AS shard FROM unnest(ARRAY['customer-7', 'order-42', 'ü']) k`)
  // the first byte of SHA-256, modulo 16
  expect(shards.map(({ shard }) => shard)).toEqual([12, 11, 0])
})
