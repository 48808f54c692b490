import { expect, test } from 'vitest'
import {
  add,
  claim,
  claimCounted,
  count,
  drain,
  emptyOutbox,
  hold,
  outboxDatabase,
  outOfOrder,
  published,
  queued,
  settle,
  pagesOf,
  unhold,
  type ClaimedRow,
  type Session,
} from '../support/outbox-sql.js'

// Two traps that made calls take seconds: statistics from a quiet moment with dead rows that nothing may remove, and a long
// chain of followers.

/** The reference run has 20,000 pinned dead rows, twice as many ready, and a chain of 50,000. */
const events = Number(process.env['OUTBOX_TRAP_EVENTS'] ?? 10_000)

const settlePages = (session: Session, token: string, rows: readonly ClaimedRow[]) =>
  pagesOf(session, 'SELECT * FROM outbox_settle(CAST($1 AS uuid), $2, NULL, NULL)', [token, JSON.stringify(published(rows))])

/** Pages of a claim and a settlement of 500 events, of the most expensive ones among `batches`. */
async function work(session: Session, batches: number) {
  const most = { claimPages: 0, settlePages: 0, events: 0 }
  for (let batch = 0; batch < batches; batch++) {
    const { token, rows, pages } = await claimCounted(session, { keyRows: 50 })
    most.claimPages = Math.max(most.claimPages, pages)
    most.settlePages = Math.max(most.settlePages, await settlePages(session, token, rows))
    most.events += rows.length
  }
  return most
}

test('statistics that say "empty", and dead rows that a long transaction pins, make a call a few times dearer, not thousands', async () => {
  const database = await outboxDatabase('traps')
  const session = await database.open()
  await session.query('ALTER TABLE outbox_delivery SET (autovacuum_enabled = off)')
  await add(session, 2_000, { key: `'k' || (i % 500)` })
  const before = await work(session, 4)

  const pin = await database.open()
  await pin.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await pin.query('SELECT count(*) FROM outbox_delivery')
  await add(session, events, { key: `'k' || (i % 5000)` })
  await drain(session)
  await session.query('VACUUM ANALYZE outbox_delivery')
  expect(await session.one(`SELECT reltuples FROM pg_class WHERE relname = 'outbox_delivery'`)).toBe(0)
  await add(session, 2 * events, { key: `'k' || (i % 5000)` })
  const pinned = await work(session, 6)
  const fresh = await work(await database.open(), 2) // plans made now
  console.log(JSON.stringify({ before, pinned, fresh }))
  await pin.query('ROLLBACK')

  // each dead row is passed once, by the claim alone; a join from a scan of the queue passes it once for each of 500 events
  for (const measured of [pinned, fresh]) {
    expect(measured.claimPages).toBeLessThan(2 * before.claimPages + events)
    expect(measured.settlePages).toBeLessThan(2 * before.settlePages)
  }
})

test('a settlement in a long chain of followers frees at most 500, and costs no more than in a short one', async () => {
  const database = await outboxDatabase('chain')
  const session = await database.open()
  const drainChain = async (followers: number) => {
    await emptyOutbox(session)
    await add(session, followers, { key: `'hot'` })
    const head = await claim(session, { keyRows: 1, rows: 1 })
    await settle(session, head.token, null, [hold(head.rows[0]!)])
    while ((await count(session, 'outbox_delivery WHERE lane = 0')) > 0) await claim(session)
    await unhold(session)
    await session.query('VACUUM ANALYZE outbox_delivery')
    const rows: ClaimedRow[] = []
    const pages: number[] = []
    for (let batch = await claim(session); batch.rows.length > 0; batch = await claim(session)) {
      rows.push(...batch.rows)
      pages.push(await settlePages(session, batch.token, batch.rows))
    }
    expect(rows).toHaveLength(followers)
    expect(outOfOrder(rows)).toBe(0)
    expect(rows.length / pages.length).toBeLessThanOrEqual(500)
    expect(await queued(session)).toBe(0)
    return Math.max(...pages)
  }
  const [short, long] = [await drainChain(1_000), await drainChain(2 * events)]
  console.log('settlement in a chain, pages', JSON.stringify({ short, long }))
  expect(long).toBeLessThan(2 * short)
})
