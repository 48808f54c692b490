import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  claim,
  clearSuspicion,
  drain,
  emptyOutbox,
  expireLeases,
  fail,
  giveBack,
  keyOf,
  outboxDatabase,
  published,
  queued,
  renew,
  settle,
  start,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('fence')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

describe('a call without a token', () => {
  test('changes nothing, though a shard that nobody leases has none either', async () => {
    await add(session, 5)
    const batch = await claim(session)
    await giveBack(session, batch)
    const none = null as unknown as string
    expect(await settle(session, none, published(batch.rows))).toMatchObject({ published: 0, given_back: 0, kept: 0 })
    expect(await settle(session, none, null, [fail(batch.rows[0]!)])).toMatchObject({ failed: 0 })
    expect(await renew(session, none)).toBe(0)
    expect(await start(session, none, batch.rows[0]!.id)).toBe(false)
    expect(await queued(session)).toBe(5)
    expect(await drain(session)).toHaveLength(5)
  })
})

describe('free shards', () => {
  test('take turns: one whose batches never end goes behind those that waited longer, however old its events are', async () => {
    const [key3, key5] = [await keyOf(session, 3), await keyOf(session, 5)]
    await add(session, 5, { key: `'${key3}'` })
    const hangs = await claim(session, { shards: 1 })
    await add(session, 5, { key: `'${key5}'`, from: 6 })
    await expireLeases(session)
    await clearSuspicion(session)
    const next = await claim(session, { shards: 1 })
    expect(new Set(hangs.rows.map(({ shard }) => shard))).toEqual(new Set([3]))
    expect(new Set(next.rows.map(({ shard }) => shard))).toEqual(new Set([5]))
    await expireLeases(session)
    await clearSuspicion(session)
    expect(new Set((await claim(session, { shards: 1 })).rows.map(({ shard }) => shard))).toEqual(new Set([3]))
  })
})
