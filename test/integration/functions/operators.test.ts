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
  operate,
  outboxDatabase,
  published,
  queued,
  repair,
  replay,
  settle,
  soundState,
  sqlStateOf,
  stateOf,
  waitsForLock,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('operators')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

/** Six failed events of type x and keys k1 to k6, each with its key in its error. */
async function sixFailed() {
  await add(session, 6, { key: `'k' || i`, type: 'x' })
  const { token, rows } = await claim(session)
  await settle(
    session,
    token,
    null,
    rows.map((event) => ({ ...fail(event), error: `E${event.ordering_key ?? ''}` })),
  )
  return rows
}

describe('an operation', () => {
  test('tried with a dry run changes nothing', async () => {
    await sixFailed()
    expect(await operate(session, 'discard', {}, { mode: 'dry-run' })).toBe(6)
    expect(await count(session, 'outbox_delivery WHERE lane = 3')).toBe(6)
    expect(await count(session, 'outbox_audit')).toBe(0)
  })

  test('takes what matches all of its filter', async () => {
    const [first] = await sixFailed()
    const later = Date.now() + 3_600_000
    for (const [filter, events] of [
      [{ orderingKey: 'k1' }, 1],
      [{ error: 'Ek2' }, 1],
      [{ eventType: 'y' }, 0],
      [{ eventType: 'x' }, 6],
      [{ eventType: 'x', orderingKey: 'k3' }, 1],
      [{ ids: [first!.id] }, 1],
      [{ fromMs: later }, 0],
      [{ untilMs: later }, 6],
      [{ destination: 'q' }, 0],
    ] as const) {
      expect([filter, await operate(session, 'redrive', filter, { mode: 'dry-run' })]).toEqual([filter, events])
    }
  })

  test('is bounded, done once, and audited: who, what, why, how many', async () => {
    await sixFailed()
    expect(await operate(session, 'release', { orderingKey: 'k1' })).toBe(1)
    expect(await operate(session, 'release', { orderingKey: 'k1' })).toBe(0)
    expect(await operate(session, 'discard', { orderingKey: 'k2' })).toBe(1)
    expect(await operate(session, 'redrive', {}, { rows: 2 })).toBe(2)
    const audit =
      'SELECT actor, action, reason, filter, events, json_array_length(event_ids) AS ids FROM outbox_audit ORDER BY id'
    expect(await session.query(audit)).toEqual([
      { actor: 'ann', action: 'release', reason: 'test', filter: { orderingKey: 'k1' }, events: 1, ids: 1 },
      { actor: 'ann', action: 'discard', reason: 'test', filter: { orderingKey: 'k2' }, events: 1, ids: 1 },
      { actor: 'ann', action: 'redrive', reason: 'test', filter: {}, events: 2, ids: 2 },
    ])
    expect(await session.one(`SELECT status FROM outbox_status WHERE ordering_key = 'k2'`)).toBe('discarded')
    expect((await drain(session)).map(({ attempts }) => attempts)).toEqual([0, 0])
    expect(await stateOf(session)).toEqual(soundState)
  })

  test('redrives an event with the id, the key and the place that it had', async () => {
    await add(session, 3, { key: `'k'` })
    const { token, rows } = await claim(session)
    await settle(session, token, published(rows.slice(0, 1)), [fail(rows[1]!)])
    expect(await operate(session, 'redrive')).toBe(1)
    const identity = (events: typeof rows) => events.map(({ id, seq, ordering_key: key, payload }) => ({ id, seq, key, payload }))
    expect(identity(await drain(session))).toEqual(identity(rows.slice(1)))
    expect(await count(session, 'outbox')).toBe(3)
  })

  test('sent again under the name of its request changes nothing more, and answers what the first did, even from the side', async () => {
    await sixFailed()
    const request = { request: '01900000-0000-7000-8000-000000000001' }
    const [other, observer] = [await database.open(), await database.open()]
    const backend = await backendOf(other)
    await session.query('BEGIN')
    expect(await operate(session, 'redrive', request, { rows: 2 })).toBe(2)
    const late = operate(other, 'redrive', request, { rows: 2 })
    await waitsForLock(observer, backend)
    await session.query('COMMIT')
    expect(await late).toBe(2)
    expect(await operate(session, 'discard', request)).toBe(2)
    expect(await count(session, 'outbox_delivery WHERE lane = 3')).toBe(4)
    expect(await count(session, 'outbox_audit')).toBe(1)
  })

  test('is undone, whatever it is, when its audit row cannot be written', async () => {
    await sixFailed()
    await operate(session, 'redrive', { orderingKey: 'k6' })
    await drain(session)
    await session.query('ALTER TABLE outbox DISABLE TRIGGER outbox_enqueue')
    await add(session, 1, { type: 'stateless' })
    await session.query('ALTER TABLE outbox ENABLE TRIGGER outbox_enqueue')
    const statuses = () => session.query('SELECT id, status, detail, replays FROM outbox_status ORDER BY id')
    const before = await statuses()
    await session.query('ALTER TABLE outbox_audit ADD CONSTRAINT none CHECK (false) NOT VALID')
    try {
      for (const action of ['redrive', 'discard', 'release']) {
        expect([action, await sqlStateOf(operate(session, action))]).toEqual([action, '23514'])
      }
      expect(await sqlStateOf(replay(session))).toBe('23514')
      expect(await sqlStateOf(repair(session))).toBe('23514')
    } finally {
      await session.query('ALTER TABLE outbox_audit DROP CONSTRAINT none')
    }
    expect(await statuses()).toEqual(before)
  })

  test('that is unknown, or by nobody, is refused', async () => {
    await sixFailed()
    expect(await sqlStateOf(session.query(`SELECT outbox_operate('x', '{}', 1, false, 'a', 'b')`))).toBe('22023')
    expect(await sqlStateOf(session.query(`SELECT outbox_operate('redrive', '{}', 1, false, '', 'b')`))).toBe('23514')
  })
})

describe('a replay', () => {
  test('sends delivered events again, with the same id, and leaves discarded ones alone', async () => {
    const failed = await sixFailed()
    await operate(session, 'discard', { orderingKey: 'k1' })
    await operate(session, 'redrive')
    await drain(session)
    expect(await replay(session, { orderingKey: 'k1' })).toBe(0)
    expect(await replay(session, { eventType: 'x' }, { mode: 'dry-run' })).toBe(5)
    expect(await replay(session, { eventType: 'x' })).toBe(5)
    expect(await replay(session, { eventType: 'x' })).toBe(0)
    const { token, rows } = await claim(session)
    const ids = failed.filter((event) => event.ordering_key !== 'k1').map(({ id }) => id)
    expect(rows.map(({ id }) => id).sort()).toEqual(ids.sort())
    expect(rows.every((event) => event.replays === 1 && event.attempts === 0)).toBe(true)
    await settle(session, token, published(rows))
    expect(await stateOf(session)).toEqual(soundState)
  })
})

describe('a repair', () => {
  test('queues the events that were written while the trigger was off, page by page, once', async () => {
    await session.query('ALTER TABLE outbox DISABLE TRIGGER outbox_enqueue')
    await add(session, 25, { key: `CASE WHEN i % 2 = 0 THEN 'k' END` })
    await session.query('ALTER TABLE outbox ENABLE TRIGGER outbox_enqueue')
    await add(session, 10)
    const all = async (mode: 'real' | 'dry-run') => {
      let found = 0
      let pages = 0
      for (let after: string | null = null; pages === 0 || after !== null; pages++) {
        const page = await repair(session, after, { rows: 10, mode })
        found += page.stateless
        after = page.next_after
      }
      return { found, pages }
    }
    expect(await all('dry-run')).toEqual({ found: 25, pages: 4 })
    expect(await queued(session)).toBe(10)
    expect(await all('real')).toEqual({ found: 25, pages: 4 })
    expect(await all('real')).toEqual({ found: 0, pages: 4 })
    expect(await stateOf(session)).toEqual(soundState)
    const rows = await drain(session)
    expect(rows).toHaveLength(35)
    expect(rows.every(({ payload }) => payload !== null)).toBe(true)
  })
})

test('a repair does not deliver a scheduled event before its time', async () => {
  await session.query('ALTER TABLE outbox DISABLE TRIGGER outbox_enqueue')
  await session.query(`INSERT INTO outbox (event_type, payload, available_at) VALUES ('x', '{}', now() + interval '1 day')`)
  await session.query('ALTER TABLE outbox ENABLE TRIGGER outbox_enqueue')
  expect((await repair(session, null, { rows: 10, mode: 'real' })).stateless).toBe(1)
  expect((await claim(session)).rows).toEqual([])
  expect(
    await count(
      session,
      `outbox_delivery d JOIN outbox o ON o.id = d.event_id WHERE d.due_at = o.available_at AND d.retry_at = d.due_at`,
    ),
  ).toBe(1)
})

describe('cleanup', () => {
  test('deletes what is past retention, in bounded batches, and never what is not delivered', async () => {
    await add(session, 35)
    await drain(session)
    await add(session, 3)
    await add(session, 2, { type: 'x' })
    const { token, rows } = await claim(session)
    const changes = rows.filter((e) => e.event_type === 'x').map((event) => fail(event))
    await settle(session, token, null, changes)
    expect(await cleanup(session, 3600)).toBe(0)
    expect([await cleanup(session, 0, 20), await cleanup(session, 0, 20), await cleanup(session, 0, 20)]).toEqual([20, 15, 0])
    expect(await count(session, 'outbox')).toBe(5)
    expect(await count(session, 'outbox_receipt')).toBe(0)
    expect(await stateOf(session)).toEqual(soundState)
  })
})

describe.each(['REPEATABLE READ', 'SERIALIZABLE'])('in isolation %s', (level) => {
  const inIsolation = async (sql: string) => {
    await session.query(`BEGIN ISOLATION LEVEL ${level}`)
    const sqlState = await sqlStateOf(session.query(sql))
    await session.query('ROLLBACK')
    return sqlState
  }

  test.each([
    ['claim', `SELECT * FROM outbox_claim(gen_random_uuid(), 'x', 1, 1, 1, 1, 1, NULL)`],
    ['settle', `SELECT * FROM outbox_settle(gen_random_uuid(), NULL, NULL, NULL)`],
    ['circuits', `SELECT outbox_circuits('{}', 1)`],
    ['circuit_fault', `SELECT * FROM outbox_circuit_fault(gen_random_uuid(), 'x', gen_random_uuid(), 1, 1, false, 'a', 'b')`],
    ['operate', `SELECT outbox_operate('redrive', '{}', 1, false, 'a', 'b')`],
    ['replay', `SELECT outbox_replay('{}', 1, false, 'a', 'b')`],
    ['repair', 'SELECT * FROM outbox_repair(NULL, 1, true, NULL, NULL, NULL)'],
    ['cleanup', 'SELECT outbox_cleanup(1, 1)'],
  ])('%s is refused, because it could not see what was committed meanwhile', async (_, sql) => {
    expect(await inIsolation(sql)).toBe('0A000')
  })

  test('a writer writes', async () => {
    expect(await inIsolation(`INSERT INTO outbox (event_type, payload, ordering_key) VALUES ('t', '1', 'iso')`)).toBe('ok')
  })
})
