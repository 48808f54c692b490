import { expect, test } from 'vitest'
import {
  add,
  claim,
  claimCounted,
  count,
  drain,
  fail,
  outboxDatabase,
  pagesOf,
  published,
  settle,
  type Session,
} from '../support/outbox-sql.js'

// What piles up for good reasons must cost those nothing who do not ask for it: delivered events until their retention is over,
// failed ones until an operator acts.

/** The reference run has 200,000. */
const events = Number(process.env['OUTBOX_HISTORY_EVENTS'] ?? 20_000)

/** Pages of a claim of 100 events, and of one look at the backlog while they wait. */
async function costs(session: Session) {
  await session.query('VACUUM ANALYZE outbox_delivery')
  await session.query('VACUUM outbox_shard')
  await add(session, 100)
  const backlogPages = await pagesOf(session, 'SELECT * FROM outbox_backlog()')
  const { token, rows, pages } = await claimCounted(session)
  expect(rows).toHaveLength(100)
  await settle(session, token, published(rows))
  return { claimPages: pages, backlogPages }
}

async function quietDatabase(name: string): Promise<Session> {
  const session = await (await outboxDatabase(name)).open()
  // the test vacuums by itself: the server's own would change what a call reads
  await session.query('ALTER TABLE outbox_delivery SET (autovacuum_enabled = false)')
  await costs(session) // plans are made
  return session
}

test(`${events} delivered events cost neither a claim nor the monitor anything`, async () => {
  const session = await quietDatabase('history')
  const before = await costs(session)
  await add(session, events, { key: `CASE WHEN i % 10 > 0 THEN 'k' || (i % 1000) END` })
  await drain(session)
  const after = await costs(session)
  console.log(JSON.stringify({ before, after }))
  // both read what is in the queue; a read of the history would touch a page for every hundred events or fewer
  expect(after.claimPages).toBeLessThan(2 * before.claimPages)
  expect(after.backlogPages).toBeLessThan(2 * before.backlogPages)
})

test(`${events} failed events cost a claim nothing`, async () => {
  const session = await quietDatabase('failed')
  const before = await costs(session)
  await add(session, events, { key: `CASE WHEN i % 10 = 0 THEN 'k' || i END` })
  for (let batch = await claim(session); batch.rows.length > 0; batch = await claim(session)) {
    await settle(
      session,
      batch.token,
      null,
      batch.rows.map((event) => fail(event)),
    )
  }
  expect(await count(session, 'outbox_delivery WHERE lane = 3')).toBe(events)
  const after = await costs(session)
  console.log(JSON.stringify({ before, after }))
  expect(after.claimPages).toBeLessThan(2 * before.claimPages)
})
