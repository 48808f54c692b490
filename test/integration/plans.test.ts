import { describe, expect, test } from 'vitest'
import {
  add,
  backlog,
  claim,
  claimCounted,
  cleanup,
  drain,
  fail,
  giveBack,
  hold,
  operate,
  outboxDatabase,
  pagesOf,
  percentile,
  published,
  queued,
  repair,
  replay,
  retry,
  settle,
  timed,
  unhold,
  type ClaimOptions,
  type Session,
} from '../support/outbox-sql.js'

// What plans do when statistics are wrong: functions whose plans were made on empty tables, many rows without ANALYZE, mass
// deletes without VACUUM, a transaction that is held open.

/** The reference run has 1,000,000. */
const events = Number(process.env['OUTBOX_PLAN_EVENTS'] ?? 40_000)
const batchesWhileOpen = Number(process.env['OUTBOX_PLAN_BATCHES'] ?? 60)

/** Claims and publishes; the median pages and milliseconds of a claim. */
async function work(session: Session, batches: number, options: ClaimOptions = {}) {
  const pages: number[] = []
  const times: number[] = []
  let done = 0
  for (let batch = 0; batch < batches; batch++) {
    const claimed = await claimCounted(session, options)
    pages.push(claimed.pages / Math.max(1, claimed.rows.length))
    await timed(times, () => settle(session, claimed.token, published(claimed.rows)))
    done += claimed.rows.length
  }
  return { events: done, pagesPerEvent: Number(percentile(pages, 0.5).toFixed(1)), settleMs: Math.round(percentile(times, 0.5)) }
}

describe('without statistics', () => {
  test(`a claim among ${events} events costs what it costs among 5,000, in old and new sessions, before and after mass deletes`, async () => {
    const database = await outboxDatabase('plans')
    const session = await database.open()
    for (const table of ['outbox', 'outbox_delivery', 'outbox_receipt', 'outbox_shard']) {
      await session.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
    }
    // plans made on empty tables, five times and more, so that they are kept
    for (let round = 0; round < 8; round++) await giveBack(session, await claim(session))
    await add(session, 10, { key: `'w' || i % 3` })
    for (let round = 0; round < 8; round++) {
      const { token, rows } = await claim(session)
      if (rows.length > 0) await settle(session, token, published(rows.slice(1)), [retry(rows[0]!)])
    }
    await add(session, 5_000, { key: `'w' || i % 500` })
    const few = await work(session, 8)

    for (let from = 0; from < events; from += 20_000) {
      await add(session, Math.min(20_000, events - from), { key: `CASE WHEN i % 10 > 0 THEN 'k' || (i % 10000) END`, from })
    }
    const many = await work(session, 20)
    const newSession = await work(await database.open(), 20)
    await operatorsPass(session)
    const dead = await work(session, 20)
    await session.query(`DELETE FROM outbox_delivery WHERE seq < (SELECT max(seq) - ${events / 4} FROM outbox_delivery)`)
    const first = await work(session, 1) // passes the deleted rows once
    const deleted = await work(session, 5)
    await session.query('VACUUM ANALYZE outbox_delivery')
    const vacuumed = await work(session, 5)
    console.log(JSON.stringify({ few, many, newSession, dead, first, deleted, vacuumed }))
    for (const measured of [many, newSession, dead, deleted, vacuumed]) {
      expect(measured.pagesPerEvent).toBeLessThan(3 * few.pagesPerEvent)
    }
  })

  /** Every operator's call on these tables touches pages by what it changes, not by what is there. */
  async function operatorsPass(session: Session): Promise<void> {
    const failing = await claim(session)
    const failed = failing.rows.slice(0, 50)
    await settle(
      session,
      failing.token,
      null,
      failed.map((event) => fail(event)),
    )
    const holding = await claim(session)
    const held = holding.rows.slice(0, 50)
    await settle(
      session,
      holding.token,
      null,
      held.map((event) => hold(event)),
    )
    expect(await unhold(session)).toBe(50)
    expect(await operate(session, 'redrive', {}, { mode: 'dry-run' })).toBe(50)
    for (const [sql, limit] of [
      [`SELECT outbox_operate('redrive', '{}', 100, false, 'ann', 'test')`, 5_000],
      [`SELECT outbox_replay('{}', 100, false, 'ann', 'test')`, 20_000],
      ['SELECT outbox_cleanup(0, 500)', 20_000],
    ] as const) {
      expect([sql, await pagesOf(session, sql)]).toEqual([sql, expect.toSatisfy((pages: number) => pages < limit)])
    }
    expect(await cleanup(session, 3_600)).toBe(0)
    expect(await replay(session, { eventType: 'none' })).toBe(0)
    expect((await repair(session, null, { rows: 1_000 })).stateless).toBe(0)
    expect((await backlog(session)).due).toBe(await queued(session))
  }
})

test('a transaction that is held open, so that nothing can be vacuumed, makes claims dearer by the dead rows alone', async () => {
  const database = await outboxDatabase('open')
  const [session, open] = [await database.open(), await database.open()]
  const feedAndWork = async (batches: number) => {
    await add(session, batches * 300, { key: `CASE WHEN i % 10 > 0 THEN 'k' || (i % 5000) END` })
    return work(session, batches, { rows: 200 })
  }
  const before = await feedAndWork(20)
  await drain(session)
  await open.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await open.query('SELECT count(*) FROM outbox')
  const during = await feedAndWork(batchesWhileOpen)
  await open.query('COMMIT')
  await drain(session)
  await session.query('VACUUM outbox_delivery')
  await session.query('VACUUM outbox_shard')
  const after = await feedAndWork(20)
  console.log(JSON.stringify({ before, during, after }))
  const deadRows = batchesWhileOpen * 300
  expect(during.pagesPerEvent).toBeLessThan(2 * before.pagesPerEvent + deadRows / 1_000)
  expect(after.pagesPerEvent).toBeLessThan(2 * before.pagesPerEvent)
})
