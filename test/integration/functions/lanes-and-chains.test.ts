import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  backlog,
  claim,
  count,
  drain,
  emptyOutbox,
  eventually,
  fail,
  hold,
  operate,
  outboxDatabase,
  outOfOrder,
  published,
  queued,
  retry,
  settle,
  soundState,
  stateOf,
  unhold,
  type Session,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('lanes')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

describe('ready events and due retries', () => {
  const makeDue = (type: string) =>
    session.query(
      `UPDATE outbox_delivery SET lane = 1, retry_at = now(), attempts = 1 WHERE event_id IN (SELECT id FROM outbox WHERE event_type = $1)`,
      [type],
    )

  test.each([
    ['500 ready ones come with half of a claim though 2,000 retries are due', 500, 2000],
    ['300 due retries come with half of a claim though 2,000 events are ready', 2000, 300],
  ])('share a claim: %s', async (_, ready, retries) => {
    await add(session, retries, { type: 'retry' })
    await makeDue('retry')
    await add(session, ready, { type: 'ready' })
    const { rows } = await claim(session)
    expect(rows.filter((event) => event.event_type === 'ready')).toHaveLength(250)
    expect(rows).toHaveLength(500)
  })
})

describe('the followers of an event that did not get through', () => {
  const claimHead = () => claim(session, { rows: 1, keyRows: 1 })

  test.each([501, 3001])('of %i events of one key whose first is retried all come, in order', async (events) => {
    await add(session, events, { key: `'k'` })
    const head = await claimHead()
    await settle(session, head.token, null, [retry(head.rows[0]!)])
    await add(session, 10, { key: `'k'`, from: 9000 })
    await expectAllInOrder(session, events + 10, 0)
  })

  test.each([
    ['hold and unhold', async () => unhold(session), 'hold', 1510, 0],
    ['release', async () => operate(session, 'release'), 'fail', 1509, 1],
    ['discard', async () => operate(session, 'discard'), 'fail', 1509, 0],
    [
      'a failure that skips',
      async () => {
        await operate(session, 'redrive')
        const again = await claim(session)
        await settle(session, again.token, null, [fail(again.rows[0]!, 'skip')])
      },
      'fail',
      1509,
      1,
    ],
  ] as const)('move aside, once, and come back in order after %s', async (_, unblock, outcome, expected, left) => {
    await add(session, 1500, { key: `'k'` })
    const head = await claimHead()
    await settle(session, head.token, null, [outcome === 'hold' ? hold(head.rows[0]!) : fail(head.rows[0]!)])
    expect((await claim(session)).rows).toEqual([])
    expect(await count(session, `outbox_delivery WHERE held_by = 'key'`)).toBe(1499)
    await unblock()
    await add(session, 10, { key: `'k'`, from: 9000 })
    await expectAllInOrder(session, expected, left)
  })

  test('wait for one that backs off, however long', async () => {
    await add(session, 3, { key: `'k'` })
    const head = await claimHead()
    await settle(session, head.token, null, [retry(head.rows[0]!, 60_000)])
    expect((await claim(session)).rows).toEqual([])
    await session.query('UPDATE outbox_delivery SET retry_at = now() WHERE lane = 1')
    await expectAllInOrder(session, 3, 0)
  })

  test('stop behind a new failure in the middle, and go on after its redrive', async () => {
    await add(session, 1200, { key: `'k'` })
    const head = await claimHead()
    await settle(session, head.token, null, [fail(head.rows[0]!)])
    await claim(session)
    await operate(session, 'discard')
    const next = await claim(session)
    await settle(session, next.token, published(next.rows.slice(0, 100)), [fail(next.rows[100]!)])
    expect(await drain(session)).toEqual([])
    expect(await count(session, `outbox_delivery WHERE held_by = 'key'`)).toBe(1098)
    expect(await count(session, `outbox_delivery WHERE lane = 0`)).toBe(0)
    await operate(session, 'redrive')
    await expectAllInOrder(session, 1099, 0)
  })

  test('go on up to the next event that failed, which stays failed', async () => {
    await add(session, 6, { key: `'k'` })
    const { token, rows } = await claim(session)
    await settle(session, token, published(rows.slice(0, 1)), [fail(rows[1]!), fail(rows[4]!)])
    expect((await claim(session)).rows).toEqual([])
    const numbers = (events: readonly { readonly payload: string | null }[]) => events.map(({ payload }) => payload)
    await operate(session, 'release', { ids: [rows[1]!.id] })
    expect(numbers(await drain(session))).toEqual(['{"i":3}', '{"i":4}'])
    expect(await count(session, 'outbox_delivery WHERE lane = 3')).toBe(2)
    await operate(session, 'release', { ids: [rows[4]!.id] })
    expect(numbers(await drain(session))).toEqual(['{"i":6}'])
  })
})

async function expectAllInOrder(from: Session, events: number, left: number): Promise<void> {
  const rows = await drain(from, { rows: 100 })
  expect(rows).toHaveLength(events)
  expect(outOfOrder(rows)).toBe(0)
  expect(await stateOf(from)).toEqual(soundState)
  expect(await queued(from)).toBe(left)
}

describe('a scheduled event', () => {
  test('comes at its time, and ages from then', async () => {
    await add(session, 1, { columns: { available_at: `now() + interval '2 seconds'` } })
    await add(session, 1, { from: 2, columns: { available_at: `now() - interval '5 seconds'` } })
    await add(session, 1, { from: 3, columns: { available_at: `'infinity'` } })
    const first = await claim(session)
    expect(first.rows.map(({ payload }) => payload)).toEqual(['{"i":2}'])
    await settle(session, first.token, published(first.rows))
    expect(await backlog(session)).toMatchObject({ scheduled: 2, due: 0, oldest_due_ms: null })

    const then = await eventually(async () => {
      const measured = await backlog(session)
      return measured.due > 0 ? measured : undefined
    })
    expect(then).toMatchObject({ due: 1, backing_off: 0 })
    const second = await claim(session)
    expect(second.rows.map(({ payload }) => payload)).toEqual(['{"i":1}'])
    expect(Date.now() - second.rows[0]!.due_at_ms).toBeLessThan(10_000)
  })

  test('keeps its place among those of its key that are due at the same time, however the rows lie', async () => {
    await add(session, 600, { key: `'s'`, columns: { available_at: `date_trunc('second', now()) + interval '3 seconds'` } })
    await session.query(
      `CREATE TEMP TABLE kept AS SELECT * FROM outbox_delivery; DELETE FROM outbox_delivery;
       INSERT INTO outbox_delivery SELECT * FROM kept ORDER BY seq DESC; DROP TABLE kept`,
    )
    await eventually(async () => (await backlog(session)).due)
    const rows = await drain(session, { rows: 50 })
    expect(rows).toHaveLength(600)
    expect(outOfOrder(rows)).toBe(0)
  })
})

describe('the backlog', () => {
  test('of nothing is nothing', async () => {
    expect(await backlog(session)).toEqual({
      oldest_due_ms: null,
      due: 0,
      scheduled: 0,
      backing_off: 0,
      held: 0,
      failed: 0,
      blocked_keys: 0,
      oldest_failed_ms: null,
      leased_shards: 0,
      open_circuits: 0,
      misconfigured_destinations: 0,
    })
  })

  test('ages by the database clock while nothing is delivered, whatever clocks the writers have', async () => {
    await add(session, 10, { columns: { created_at: `now() - interval '9 hours'` } })
    await add(session, 2, { columns: { created_at: `now() + interval '9 hours'` } })
    const began = await session.one<number>(`SELECT CAST(extract(epoch FROM min(due_at)) * 1000 AS bigint) FROM outbox_delivery`)
    const old = await eventually(async () => {
      const measured = await backlog(session)
      return (measured.oldest_due_ms ?? 0) > 500 ? measured : undefined
    })
    const now = await session.one<number>('SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)')
    expect(old).toMatchObject({ due: 12, held: 0, failed: 0 })
    expect(old!.oldest_due_ms).toBeLessThanOrEqual(now - began + 1)
  })

  test('counts every state, held and backing-off events among the due ones by their age', async () => {
    await add(session, 10, { key: `CASE WHEN i < 6 THEN 'b' END` })
    await add(session, 3, { columns: { available_at: `now() + interval '1 hour'` } })
    const { token, rows } = await claim(session)
    expect((await backlog(session)).leased_shards).toBe(new Set(rows.map(({ shard }) => shard)).size)
    const [keyed, others] = [rows.filter((e) => e.ordering_key), rows.filter((e) => !e.ordering_key)]
    const changes = [fail(keyed[0]!), retry(others[0]!, 60_000), hold(others[1]!), fail(others[2]!)]
    await settle(session, token, published(others.slice(3)), changes)
    await claim(session)
    const measured = await backlog(session)
    expect(measured).toMatchObject({
      due: 6, // 4 followers, 1 backing off, 1 held
      scheduled: 3,
      backing_off: 1,
      held: 5,
      failed: 2,
      blocked_keys: 1,
      leased_shards: 0,
    })
    expect(measured.oldest_due_ms).not.toBeNull()
    expect(measured.oldest_failed_ms).toBeLessThan(5_000)

    await session.query(`UPDATE outbox_delivery SET due_at = due_at - interval '1 hour'`)
    expect((await backlog(session)).oldest_due_ms).toBeGreaterThan(3_600_000)
    await operate(session, 'redrive', { ids: [others[2]!.id] })
    const age = `SELECT extract(epoch FROM clock_timestamp() - due_at) < 60 FROM outbox_delivery WHERE event_id = $1`
    expect(await session.one<boolean>(age, [others[2]!.id])).toBe(true)
  })
})
