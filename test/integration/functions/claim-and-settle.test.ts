import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  claim,
  clearSuspicion,
  cleanup,
  count,
  drain,
  emptyOutbox,
  eventually,
  expireFailed,
  expireLeases,
  fail,
  giveBack,
  hold,
  keyOf,
  operate,
  outboxDatabase,
  outOfOrder,
  published,
  queued,
  renew,
  replay,
  retry,
  settle,
  soundState,
  sqlStateOf,
  start,
  stateOf,
  unhold,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('claim')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

const events = { columns: { aggregate_type: `'order'`, aggregate_id: `'o' || i`, destination: `'q' || i`, headers: `'{"h":1}'` } }

describe('a claim', () => {
  test('returns each event whole, in seq order', async () => {
    await add(session, 20, { key: `CASE WHEN i % 2 = 0 THEN 'k' || i % 4 END`, ...events })
    const { rows } = await claim(session)
    expect(rows).toHaveLength(20)
    expect(rows[0]).toMatchObject({
      event_type: 't',
      event_version: 1,
      aggregate_type: 'order',
      aggregate_id: 'o1',
      ordering_key: null,
      destination: 'q1',
      headers: '{"h":1}',
      attempts: 0,
      starts: 0,
      replays: 0,
      reclaimed_from: null,
      suspects_wait: false,
      released: false,
      payload_bytes: 7,
      payload: '{"i":1}',
    })
    expect(Math.abs(rows[0]!.created_at_ms - Date.now())).toBeLessThan(5_000)
    expect(Math.abs(rows[0]!.due_at_ms - Date.now())).toBeLessThan(5_000)
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map(({ seq }) => seq).sort((a, b) => a - b))
  })

  test('leaves nothing to others, and its repeat returns the same events', async () => {
    await add(session, 20)
    const first = await claim(session)
    expect((await claim(session)).rows).toEqual([])
    expect((await claim(session, { token: first.token })).rows).toEqual(first.rows)
  })

  test('with the same token returns what is new in its shards, and nothing that is in flight', async () => {
    await add(session, 20, { columns: { destination: `'A'` } })
    const first = await claim(session)
    await add(session, 20, { columns: { destination: `'B'` } })
    expect((await claim(session)).rows).toEqual([])
    const more = await claim(session, { token: first.token, inFlight: first.rows.map(({ id }) => id) })
    expect(more.rows.map(({ destination }) => destination)).toEqual(Array.from({ length: 20 }, () => 'B'))
  })

  test('that comes when its batch was settled gets nothing and leases nothing', async () => {
    await add(session, 5)
    const { token, rows } = await claim(session)
    await settle(session, token, published(rows))
    await add(session, 5)
    expect((await claim(session, { token })).rows).toEqual([])
    expect(await count(session, 'outbox_shard WHERE lease_token IS NOT NULL')).toBe(0)
  })

  test('of an event whose row was deleted by hand has no type, and the event can be failed and discarded', async () => {
    await add(session, 2)
    await session.query('DELETE FROM outbox WHERE id = (SELECT id FROM outbox LIMIT 1)')
    const { token, rows } = await claim(session)
    expect(rows.filter(({ event_type: type }) => type === null)).toHaveLength(1)
    expect(
      await settle(
        session,
        token,
        null,
        rows.map((event) => fail(event)),
      ),
    ).toMatchObject({ failed: 2 })
    expect(await operate(session, 'discard')).toBe(2)
  })
})

describe('a settlement', () => {
  test('publishes with a receipt, and its repeat changes nothing', async () => {
    await add(session, 20, events)
    const { token, rows } = await claim(session)
    expect(await settle(session, token, published(rows))).toMatchObject({ published: 20, kept: 0 })
    expect(await settle(session, token, published(rows))).toMatchObject({ published: 0, given_back: 0, settled_before: 16 })
    expect(await session.query('SELECT * FROM outbox_status WHERE id = $1', [rows[0]!.id])).toMatchObject([
      { status: 'published', attempts: 1, broker_message_id: `m${rows[0]!.seq}`, destination: 'q1' },
    ])
    expect(await queued(session)).toBe(0)
  })

  test('with a token that leases nothing changes nothing', async () => {
    await add(session, 5)
    const { rows } = await claim(session)
    expect(await settle(session, randomUUID(), published(rows))).toEqual({
      published: 0,
      retried: 0,
      held: 0,
      failed: 0,
      freed: 0,
      given_back: 0,
      kept: 0,
      settled_before: 0,
    })
    expect(await queued(session)).toBe(5)
  })

  test('leaves alone what another batch of the same relay leases', async () => {
    const [key3, key5] = [await keyOf(session, 3), await keyOf(session, 5)]
    await add(session, 2, { key: `'${key3}'` })
    await add(session, 2, { key: `'${key5}'` })
    const [one, other] = [await claim(session, { shards: 1 }), await claim(session, { shards: 1 })]
    expect(await settle(session, one.token, published([...one.rows, ...other.rows]))).toMatchObject({
      published: 2,
      given_back: 1,
    })
    expect(await settle(session, other.token, published(other.rows))).toMatchObject({ published: 2, given_back: 1 })
  })

  test('records every outcome once, and people can read it', async () => {
    await add(session, 4)
    const { token, rows } = await claim(session)
    const [a, b, c, d] = rows as [(typeof rows)[0], (typeof rows)[0], (typeof rows)[0], (typeof rows)[0]]
    const changes = [retry(b, 60_000), hold(c, 'X'), fail(d)]
    expect(await settle(session, token, published([a]), changes)).toMatchObject({ published: 1, retried: 1, held: 1, failed: 1 })
    expect(await settle(session, token, published([a]), changes)).toMatchObject({ published: 0, retried: 0, held: 0, failed: 0 })
    expect(
      await session.query('SELECT status, detail, attempts, last_error FROM outbox_status ORDER BY attempts, status, detail'),
    ).toEqual([
      { status: 'pending', detail: 'held by destination:X', attempts: 0, last_error: 'open' },
      { status: 'failed', detail: null, attempts: 1, last_error: 'bad' },
      { status: 'pending', detail: 'backing off', attempts: 1, last_error: 'boom' },
      { status: 'published', detail: null, attempts: 1, last_error: null },
    ])
    expect(await stateOf(session)).toEqual(soundState)
  })

  test('of a retry keeps the event until its time, and a late one with the old attempts changes nothing', async () => {
    await add(session, 1)
    const first = await claim(session)
    await settle(session, first.token, null, [retry(first.rows[0]!, 200)])
    expect((await claim(session)).rows).toEqual([])
    const again = await eventually(async () => {
      const next = await claim(session)
      return next.rows.length > 0 ? next : undefined
    })
    expect(again!.rows).toMatchObject([{ id: first.rows[0]!.id, attempts: 1 }])
    expect(await settle(session, again!.token, null, [retry(first.rows[0]!, 9e6)], [])).toMatchObject({ retried: 0, kept: 1 })
  })

  test('of a retry does not come before its time with what is ready in its shard', async () => {
    const key = await keyOf(session, 3)
    await add(session, 1, { key: `'${key}'` })
    const first = await claim(session)
    await settle(session, first.token, null, [retry(first.rows[0]!, 60_000)])
    await add(session, 1, { key: `'${await keyOf(session, 3, 1)}'`, from: 2 })
    expect((await claim(session)).rows.map(({ payload }) => payload)).toEqual(['{"i":2}'])
  })

  test('that comes again, while its shard is leased, leaves alone what an operator has decided since', async () => {
    await add(session, 2, { key: `'k'` })
    const { token, rows } = await claim(session, { keyRows: 1 })
    const failure = [{ ...fail(rows[0]!), charge: false }]
    expect(await settle(session, token, null, failure, [])).toMatchObject({ failed: 1, kept: 1 }) // its answer is lost
    expect(await operate(session, 'release')).toBe(1)
    expect(await settle(session, token, null, failure, [])).toMatchObject({ failed: 0, kept: 1 })
    expect((await claim(session, { token })).rows.map(({ payload }) => payload)).toEqual(['{"i":2}'])
  })

  test('that comes again, while its shard is leased, does not confirm what was replayed since', async () => {
    await add(session, 2, { key: `'k'` })
    const { token, rows } = await claim(session, { keyRows: 1 })
    expect(await settle(session, token, published(rows), null, [])).toMatchObject({ published: 1, kept: 1 }) // its answer is lost
    expect(await replay(session, { ids: [rows[0]!.id] })).toBe(1)
    expect(await settle(session, token, published(rows), null, [])).toMatchObject({ published: 0, kept: 1 })
    const again = await claim(session, { token })
    expect(again.rows.map(({ replays }) => replays).sort()).toEqual([0, 1])
    expect(await settle(session, token, published(again.rows))).toMatchObject({ published: 2 })
  })

  test('of a hold waits for the destination to be back', async () => {
    await add(session, 1)
    const { token, rows } = await claim(session)
    await settle(session, token, null, [hold(rows[0]!, 'X')])
    expect((await claim(session)).rows).toEqual([])
    expect(await unhold(session, 'Y')).toBe(0)
    expect(await unhold(session, 'X')).toBe(1)
    expect(await unhold(session, 'X')).toBe(0)
    expect(await drain(session)).toHaveLength(1)
  })

  test('shows where and why an event failed, and operators find it by that', async () => {
    await add(session, 20, { columns: { destination: `'A'` } })
    const { token, rows } = await claim(session)
    const changes = rows.map((event) => ({ ...fail(event), destination: 'routed', errorCode: 'TooBig' }))
    expect(await settle(session, token, null, changes)).toMatchObject({ failed: 20 })
    expect(await operate(session, 'redrive', { destination: 'routed', errorCode: 'TooBig' }, { mode: 'dry-run' })).toBe(20)
    expect(await operate(session, 'redrive', { destination: 'A' }, { mode: 'dry-run' })).toBe(0)
    expect(
      await session.query(`SELECT DISTINCT destination, last_error_code FROM outbox_status WHERE status = 'failed'`),
    ).toEqual([{ destination: 'routed', last_error_code: 'TooBig' }])
  })

  test.each([
    ['U+0000', 'a\u0000b', '22P05'],
    ['a lone surrogate', 'a\ud83d', '22P02'],
  ])('with %s in an error text is refused whole, so the caller must strip it', async (_, error, sqlState) => {
    await add(session, 1)
    const { token, rows } = await claim(session)
    expect(await sqlStateOf(settle(session, token, null, [{ ...retry(rows[0]!), error }], []))).toBe(sqlState)
  })

  test('may be partial: progress, then one shard, while the other stays leased', async () => {
    const [key3, key5] = [await keyOf(session, 3), await keyOf(session, 5)]
    await add(session, 3, { key: `'${key3}'` })
    await add(session, 3, { key: `'${key5}'`, from: 4 })
    const { token, rows } = await claim(session)
    const third = rows.filter(({ shard }) => shard === 3)
    expect(await settle(session, token, published(third.slice(0, 1)), null, [])).toMatchObject({
      published: 1,
      given_back: 0,
      kept: 2,
    })
    expect(await settle(session, token, published(third.slice(1)), null, [3])).toMatchObject({
      published: 2,
      given_back: 1,
      kept: 1,
    })
    expect(await settle(session, token, published(third.slice(1)), null, [3])).toMatchObject({ published: 0 })
    await add(session, 1, { key: `'${key3}'`, from: 9 })
    expect((await claim(session)).rows.map(({ shard }) => shard)).toEqual([3])
  })
})

describe('a lease', () => {
  test('that was lost is told to the next relay, and the late one changes nothing', async () => {
    await add(session, 10, { key: `'k'` })
    const late = await claim(session)
    await expireLeases(session)
    const next = await claim(session, { suspectLeaseSeconds: 30 })
    expect(next.rows.map(({ reclaimed_from }) => reclaimed_from)).toEqual(['test'])
    expect(await settle(session, late.token, published(late.rows))).toMatchObject({
      published: 0,
      given_back: 0,
      settled_before: 0,
    })
    expect(await queued(session)).toBe(10)
    expect(await renew(session, late.token)).toBe(0)
    expect(await start(session, late.token, late.rows[0]!.id)).toBe(false)
    expect((await claim(session, { token: next.token })).rows).toEqual(next.rows)
  })

  test('that ran out but was not taken over still counts', async () => {
    await add(session, 5)
    const { token, rows } = await claim(session, { leaseSeconds: 0 })
    expect(await settle(session, token, published(rows))).toMatchObject({ published: 5 })
  })

  test('is renewed for the shards of its token alone', async () => {
    await add(session, 20)
    const { token, rows } = await claim(session)
    expect(await renew(session, token)).toBe(new Set(rows.map(({ shard }) => shard)).size)
    expect(await renew(session, token, [rows[0]!.shard])).toBe(1)
    expect(await renew(session, randomUUID())).toBe(0)
  })
})

describe('a start', () => {
  test('counts once a token, is told to the next relay, and is forgotten with any outcome', async () => {
    const [key3, key5] = [await keyOf(session, 3), await keyOf(session, 5)]
    await add(session, 2, { key: `'${key3}'` })
    await add(session, 3, { key: `'${key5}'`, from: 4 })
    const { token, rows } = await claim(session)
    const fifth = rows.filter(({ shard }) => shard === 5)
    expect([await start(session, token, fifth[0]!.id), await start(session, token, fifth[0]!.id)]).toEqual([true, true])
    await settle(session, token, published(rows.filter(({ shard }) => shard === 3)), null, [3])
    expect(await start(session, token, rows.find(({ shard }) => shard === 3)!.id)).toBe(false)

    await expireLeases(session)
    const next = await claim(session, { suspectLeaseSeconds: 30 })
    expect(next.rows.map(({ starts }) => starts)).toEqual([1])
    await settle(session, next.token, null, [retry(next.rows[0]!)])
    await clearSuspicion(session)
    const last = await claim(session)
    expect(last.rows.map(({ id, starts }) => [id, starts])).toEqual([[fifth[0]!.id, 0]])
    await settle(session, last.token, published(last.rows))
    expect(await drain(session)).toHaveLength(2)
  })
})

describe('the bounds of a claim', () => {
  test('are rows, rows of a key, and shards', async () => {
    await add(session, 100, { key: `'k'` })
    await add(session, 100, { from: 101 })
    const capped = await claim(session, { keyRows: 7 })
    expect(capped.rows.filter((event) => event.ordering_key === 'k')).toHaveLength(7)
    expect(capped.rows).toHaveLength(107)
    expect(outOfOrder(capped.rows)).toBe(0)
    await giveBack(session, capped)
    const few = await claim(session, { rows: 30 })
    expect(few.rows).toHaveLength(30)
    await giveBack(session, few)
    const shards = new Set((await claim(session, { shards: 3, keyRows: 1 })).rows.map(({ shard }) => shard))
    expect(shards.size).toBe(3)
  })

  test('are bytes too: headers and payloads count, and the first event always comes', async () => {
    await add(session, 1000, { columns: { headers: `json_build_object('h', repeat('x', 8000))` } })
    const headers = await claim(session, { rows: 1000 })
    expect(Buffer.byteLength(JSON.stringify(headers.rows))).toBeLessThan(800_000)
    expect(headers.rows.length).toBeGreaterThan(70)

    await emptyOutbox(session)
    await add(session, 2, { payload: `to_json(ARRAY[repeat('x', 40000)])` })
    expect((await claim(session, { bytes: 10 })).rows).toHaveLength(1)
  })

  test.each([
    ['ASCII', 'x'],
    ['4-byte', '😀'],
  ])('leave a payload of 1 MB of %s characters out: it is read in chunks below 64 KB', async (_, character) => {
    const body = JSON.stringify({ a: character.repeat(1_048_000 / Buffer.byteLength(character)) })
    await session.query(`INSERT INTO outbox (event_type, payload) VALUES ('t', $1)`, [body])
    const { rows } = await claim(session)
    expect(rows).toMatchObject([{ payload: null, payload_bytes: Buffer.byteLength(body) }])
    const parts: string[] = []
    for (let chunks = 1; parts.length < chunks;) {
      const sql = 'SELECT * FROM outbox_payload_chunks(CAST($1 AS uuid), $2, 5, 12000)'
      const answer = await session.query<{ chunks: number; part: string }>(sql, [rows[0]!.id, parts.length])
      parts.push(...answer.map(({ part }) => part))
      chunks = answer[0]!.chunks
    }
    expect(parts.join('')).toBe(body)
    expect(Math.max(...parts.map((part) => Buffer.byteLength(part)))).toBeLessThan(65_536)
  })
})

test('failed events past their retention are discarded, with an audit row, and then cleaned up', async () => {
  await add(session, 20)
  const { token, rows } = await claim(session)
  await settle(
    session,
    token,
    null,
    rows.map((event) => fail(event)),
  )
  expect(await expireFailed(session, 3600)).toBe(0)
  expect(await expireFailed(session, 0)).toBe(20)
  expect(await count(session, `outbox_status WHERE status = 'discarded'`)).toBe(20)
  expect(await session.query('SELECT actor, action, events FROM outbox_audit')).toEqual([
    { actor: 'cleanup', action: 'discard', events: 20 },
  ])
  expect(await cleanup(session)).toBe(20)
})
