import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  backendOf,
  claim,
  cleanup,
  count,
  drain,
  emptyOutbox,
  fail,
  giveBack,
  hold,
  keyOf,
  operate,
  outboxDatabase,
  outOfOrder,
  published,
  queued,
  repair,
  replay,
  settle,
  soundState,
  sqlStateOf,
  stateOf,
  unhold,
  waitsForLock,
  type Session,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('writers')
const [observer, a, b, c, blocker] = [
  await database.open(),
  await database.open(),
  await database.open(),
  await database.open(),
  await database.open(),
]
const [backendOfA, backendOfB, backendOfBlocker] = [await backendOf(a), await backendOf(b), await backendOf(blocker)]
const [key3, key5] = [await keyOf(observer, 3), await keyOf(observer, 5)]
beforeEach(() => emptyOutbox(observer))

const lockShard = async (shard: number) => {
  await blocker.query('BEGIN')
  await blocker.query('SELECT FROM outbox_shard WHERE shard = $1 FOR UPDATE', [shard])
}

describe('an operator beside a relay', () => {
  test.each([
    ['redrive', 0],
    ['discard', 0],
    ['release', 1],
  ])('%s before a settlement of the same shard: both are done, the key stays in order', async (action, left) => {
    await add(observer, 3, { key: `'${key3}'` })
    await add(observer, 4)
    const first = await claim(a)
    const head = first.rows.find((event) => event.ordering_key === key3)!
    await settle(a, first.token, published(first.rows.filter((event) => event.ordering_key === null)), [fail(head)])
    await giveBack(a, await claim(a))
    await add(observer, 3, { key: `'${await keyOf(observer, 3, 1)}'` })
    const batch = await claim(a)

    await lockShard(3)
    const operating = operate(b, action)
    await waitsForLock(observer, backendOfB)
    const settling = settle(a, batch.token, published(batch.rows))
    await waitsForLock(observer, backendOfA)
    await blocker.query('COMMIT')
    expect([await operating, (await settling).published]).toEqual([1, 3])
    expect(outOfOrder(await drain(observer))).toBe(0)
    expect(await queued(observer)).toBe(left)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('unhold waits for the shard, a claim passes it over, and then all come in order', async () => {
    await add(observer, 5, { key: `'${key3}'` })
    const { token, rows } = await claim(a)
    await settle(a, token, null, [hold(rows[0]!)])
    await claim(a)
    await lockShard(3)
    const unholding = unhold(b)
    await waitsForLock(observer, backendOfB)
    await add(observer, 1, { key: `'${key3}'`, from: 6 })
    expect((await claim(a)).rows).toEqual([])
    await blocker.query('COMMIT')
    expect(await unholding).toBe(1)
    const all = await drain(observer)
    expect(all).toHaveLength(6)
    expect(outOfOrder(all)).toBe(0)
    expect(await stateOf(observer)).toEqual(soundState)
  })
})

describe('an operator beside another one', () => {
  const failedOf = async (keys: readonly string[], error: string) => {
    const { token, rows } = await claim(a)
    expect(rows.map((event) => event.ordering_key).sort()).toEqual([...keys].sort())
    await settle(
      a,
      token,
      null,
      rows.map((event) => ({ ...fail(event), error })),
    )
  }

  test('leaves alone what was redriven while it waited, and failed for another reason since', async () => {
    for (const key of [key3, key5]) await add(observer, 1, { key: `'${key}'` })
    await failedOf([key3, key5], 'old')
    await lockShard(3)
    const discarding = operate(b, 'discard', { error: 'old' })
    await waitsForLock(observer, backendOfB)
    expect(await operate(a, 'redrive', { orderingKey: key5 })).toBe(1)
    await failedOf([key5], 'new')
    await blocker.query('COMMIT')
    expect(await discarding).toBe(1)
    expect(await count(observer, `outbox_delivery WHERE lane = 3 AND last_error = 'new'`)).toBe(1)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('takes the next ones when another act has taken all that it chose, in place of saying that none is left', async () => {
    for (const key of [key3, key5]) await add(observer, 1, { key: `'${key}'` })
    await failedOf([key3, key5], 'old')
    await blocker.query('BEGIN')
    expect(await operate(blocker, 'discard', {}, { rows: 1 })).toBe(1)
    const discarding = operate(b, 'discard', {}, { rows: 1 })
    await waitsForLock(observer, backendOfB)
    await blocker.query('COMMIT')
    expect(await discarding).toBe(1)
    expect(await count(observer, 'outbox_delivery')).toBe(0)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('gives up the shard that it waited for in vain before it waits for another one, so that they cannot deadlock', async () => {
    for (const key of [key5, key3]) await add(observer, 1, { key: `'${key}'` })
    await failedOf([key3, key5], 'old')
    await a.query('BEGIN')
    expect(await operate(a, 'discard', {}, { rows: 1 })).toBe(1)
    const discarding = sqlStateOf(operate(b, 'discard', {}, { rows: 1 }))
    await waitsForLock(observer, backendOfB)
    // what is left is in shard 3, which is in the hands of somebody who waits for shard 5
    await lockShard(3)
    const lockingBoth = sqlStateOf(blocker.query('SELECT FROM outbox_shard WHERE shard = 5 FOR UPDATE'))
    await waitsForLock(observer, backendOfBlocker)
    await a.query('COMMIT')
    const locked = await lockingBoth
    await blocker.query('COMMIT')
    expect([await discarding, locked]).toEqual(['ok', 'ok'])
    expect(await count(observer, 'outbox_delivery')).toBe(0)
  })
})

describe('replay and cleanup of the same events', () => {
  /** 30 events of three keys, delivered ten days ago. */
  const delivered = async () => {
    await emptyOutbox(observer)
    await add(observer, 30, { key: `'k' || i % 3` })
    const rows = await drain(observer)
    await observer.query(`UPDATE outbox_receipt SET delivered_at = now() - interval '10 days'`)
    return rows.map(({ id }) => id)
  }

  test('cleanup takes nothing that an open replay has taken', async () => {
    const ids = await delivered()
    await b.query('BEGIN')
    await replay(b, { ids })
    expect(await cleanup(a, 60)).toBe(0)
    await b.query('COMMIT')
    const rows = await drain(observer)
    expect(rows).toHaveLength(30)
    expect(rows.every((event) => event.event_type === 't' && event.payload !== null)).toBe(true)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('a replay takes nothing that an open cleanup deletes', async () => {
    const ids = await delivered()
    await b.query('BEGIN')
    expect(await cleanup(b, 60)).toBe(30)
    const replaying = replay(a, { ids })
    await waitsForLock(observer, backendOfA)
    await b.query('COMMIT')
    expect(await replaying).toBe(0)
    expect(await queued(observer)).toBe(0)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test.each([
    ['COMMIT', 0],
    ['ROLLBACK', 30],
  ])('of two replays the second waits, and after the %s of the first takes %i events', async (end, taken) => {
    const ids = await delivered()
    await b.query('BEGIN')
    expect(await replay(b, { ids })).toBe(30)
    const second = replay(a, { ids })
    await waitsForLock(observer, backendOfA)
    await b.query(end)
    expect(await second).toBe(taken)
    expect(await queued(observer)).toBe(30)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('replays with different filters beside a cleanup do not deadlock, 25 times', async () => {
    for (let round = 0; round < 25; round++) {
      const ids = await delivered()
      const answers = await Promise.all([
        sqlStateOf(replay(a, { ids: [...ids].reverse() })),
        sqlStateOf(replay(b, { orderingKey: 'k1' })),
        sqlStateOf(replay(c, { eventType: 't' })),
        sqlStateOf(cleanup(blocker, 864_000, 10)),
      ])
      expect(answers).toEqual(['ok', 'ok', 'ok', 'ok'])
    }
    expect(await stateOf(observer)).toEqual(soundState)
  })
})

test('of two repairs the slow one does not queue again what the other one repaired and a relay published', async () => {
  // stripes are locked in ascending order: the slow one must stop before it has locked the other key
  const [early, late] = (
    await observer.query<{ key: string }>(`SELECT k AS key FROM unnest(CAST($1 AS text[])) k ORDER BY outbox_key_stripe(k)`, [
      [key3, key5],
    ])
  ).map(({ key }) => key)
  await observer.query('ALTER TABLE outbox DISABLE TRIGGER outbox_enqueue')
  await add(observer, 1, { key: `'${early ?? ''}'` })
  await add(observer, 1, { key: `'${late ?? ''}'`, from: 2 })
  await observer.query('ALTER TABLE outbox ENABLE TRIGGER outbox_enqueue')
  await observer.query(`UPDATE outbox SET id = CAST('ffffffff-ffff-7fff-bfff-ffffffffffff' AS uuid) WHERE ordering_key = $1`, [
    late,
  ])
  const [first] = await observer.query<{ id: string }>('SELECT CAST(id AS text) AS id FROM outbox ORDER BY id')
  await blocker.query('BEGIN')
  await blocker.query('SELECT outbox_lock_keys(ARRAY[$1])', [early])
  const slow = repair(b)
  await waitsForLock(observer, backendOfB)
  const fast = repair(a, first!.id)
  await Promise.race([fast, waitsForLock(observer, backendOfA)]) // through, or behind the slow one
  await drain(observer)
  await blocker.query('COMMIT')
  await Promise.all([slow, fast])
  expect(await stateOf(observer)).toEqual(soundState)
  const { token, rows } = await claim(observer)
  expect(await sqlStateOf(settle(observer, token, published(rows)))).toBe('ok')
})

describe('writers of one key', () => {
  const write = (session: Session, key: string, number: number) =>
    session.query(`INSERT INTO outbox (event_type, payload, ordering_key) VALUES ('t', $2, $1)`, [key, String(number)])
  const sent = async () => (await drain(observer)).map(({ payload }) => Number(payload))

  test('the second waits for the commit of the first, so seq order is commit order', async () => {
    await a.query('BEGIN')
    await write(a, 'w', 1)
    const second = write(b, 'w', 3)
    await waitsForLock(observer, backendOfB)
    expect((await claim(c)).rows).toEqual([])
    // the one that waits has not drawn its place yet
    await write(a, 'w', 2)
    await a.query('COMMIT')
    await second
    expect(await sent()).toEqual([1, 2, 3])
  })

  test('the second goes on after a rollback of the first', async () => {
    await a.query('BEGIN')
    await write(a, 'w', 1)
    const second = write(b, 'w', 2)
    await waitsForLock(observer, backendOfB)
    await a.query('ROLLBACK')
    await second
    expect(await sent()).toEqual([2])
  })

  test('a rollback to a savepoint keeps the order', async () => {
    await a.query('BEGIN')
    await a.query('SAVEPOINT s')
    await write(a, 'w', 1)
    await a.query('ROLLBACK TO s')
    await write(a, 'w', 3)
    const second = write(b, 'w', 4)
    await waitsForLock(observer, backendOfB)
    await a.query('COMMIT')
    await second
    expect(await sent()).toEqual([3, 4])
  })

  test('two keys in opposite order: one writer is told of the deadlock, the other is whole', async () => {
    await a.query('BEGIN')
    await b.query('BEGIN')
    await write(a, 'x1', 1)
    await write(b, 'x2', 2)
    const finish = async (session: Session, call: Promise<unknown>) => {
      const sqlState = await sqlStateOf(call)
      await session.query(sqlState === 'ok' ? 'COMMIT' : 'ROLLBACK')
      return sqlState
    }
    const answers = await Promise.all([finish(a, write(a, 'x2', 3)), finish(b, write(b, 'x1', 4))])
    expect(answers.sort()).toEqual(['40P01', 'ok'])
    expect(await sent()).toHaveLength(2)
  })

  test('20,000 keys in each of four statements at once: no deadlock, and no more locks than stripes', async () => {
    const sql = (keys: string) =>
      `INSERT INTO outbox (event_type, payload, ordering_key) SELECT 't', '1', 'u' || i FROM ${keys} i`
    await a.query('BEGIN')
    await a.query(sql('generate_series(1, 20000)'))
    const held = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1`
    expect(await observer.one<number>(held, [backendOfA])).toBeLessThanOrEqual(4096)
    const others = [b, c, blocker].map((session) => sqlStateOf(session.query(sql('generate_series(20000, 1, -1)'))))
    await waitsForLock(observer, backendOfB)
    await a.query('COMMIT')
    expect(await Promise.all(others)).toEqual(['ok', 'ok', 'ok'])
    expect(await count(observer, 'outbox_delivery')).toBe(80_000)
  })

  test('whoever waits 5 s for a key is told so, while other keys go on', async () => {
    await a.query('BEGIN')
    await write(a, 'z', 1)
    const began = performance.now()
    const waiting = sqlStateOf(write(b, 'z', 2))
    await waitsForLock(observer, backendOfB)
    expect(await sqlStateOf(write(c, 'zz', 2))).toBe('ok')
    expect(await waiting).toBe('55P03')
    expect(performance.now() - began).toBeLessThan(7_500)
    await a.query('ROLLBACK')
  })
})
