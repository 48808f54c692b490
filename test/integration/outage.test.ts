import { expect, test } from 'vitest'
import {
  add,
  backlog,
  claim,
  claimCounted,
  count,
  drain,
  emptyOutbox,
  fail,
  hold,
  operate,
  outboxDatabase,
  outOfOrder,
  pagesOf,
  percentile,
  published,
  queued,
  settle,
  soundState,
  stateOf,
  timed,
  unhold,
  type Session,
} from '../support/outbox-sql.js'

/** The reference run has 200,000. */
const events = Number(process.env['OUTBOX_OUTAGE_EVENTS'] ?? 20_000)
const keys = events / 20

const database = await outboxDatabase('outage')
const session = await database.open()
// the test vacuums by itself: when the server's own vacuum or analysis comes, it changes what a claim reads
await session.query('ALTER TABLE outbox_delivery SET (autovacuum_enabled = false)')

/** Pages of claims of 100 events of a destination that is up, and then of claims that find nothing: of the first, and of the dearest later one. */
async function probe(label: string) {
  const times: number[] = []
  const emptyTimes: number[] = []
  const claims: number[] = []
  const empty: number[] = []
  for (let round = 0; round < 10; round++) {
    await add(session, 100, { key: `'b' || i`, type: 'B', from: round * 100 })
    const batch = await timed(times, () => claimCounted(session, { rows: 100 }))
    expect(batch.rows).toHaveLength(100)
    claims.push(batch.pages)
    await settle(session, batch.token, published(batch.rows))
  }
  for (let round = 0; round < 10; round++) {
    const nothing = await claimCounted(session, { rows: 100 })
    expect(nothing.rows).toEqual([])
    empty.push(nothing.pages)
    await timed(emptyTimes, () => claim(session, { rows: 100 }))
  }
  const [first = 0, ...later] = claims
  const [firstEmpty = 0, ...laterEmpty] = empty
  const result = { first, claim: Math.max(...later), firstEmpty, empty: Math.max(...laterEmpty) }
  const [ms, emptyMs] = [times, emptyTimes].map((all) => Math.round(10 * percentile(all, 0.5)) / 10)
  console.log(label, JSON.stringify({ ...result, ms, emptyMs }))
  return result
}

test(`${events} events of ${keys} keys behind a dead destination cost the others nothing, and come back in order`, async () => {
  await probe('warm-up')
  const before = await probe('no outage')
  for (let from = 0; from < events; from += 10_000) {
    await add(session, Math.min(10_000, events - from), { key: `'k' || (i % ${keys})`, type: 'A', from })
  }
  let heads = 0
  let claims = 0
  while ((await count(session, 'outbox_delivery WHERE lane = 0')) > 0) {
    const { token, rows } = await claim(session, { keyRows: 1 })
    claims++
    heads += rows.length
    await settle(
      session,
      token,
      null,
      rows.map((event) => hold(event, 'A')),
    )
  }
  console.log(`put aside: ${heads} heads, ${claims} claims`)
  expect(heads).toBe(keys)
  expect(await session.query('SELECT lane, held_by, count(*) AS events FROM outbox_delivery GROUP BY 1, 2 ORDER BY 2')).toEqual([
    { lane: 2, held_by: 'destination:A', events: keys },
    { lane: 2, held_by: 'key', events: events - keys },
  ])

  const during = await probe('outage')
  await session.query('VACUUM ANALYZE outbox_delivery')
  const vacuumed = await probe('outage, vacuumed')
  // until vacuum comes, after 5,000 dead rows, the first claim steps over a dead row of each event that was put aside, and marks
  // it; later ones still step over the index pages that hold nothing else, some 200 entries each
  expect(during.first).toBeLessThan(before.claim + events)
  expect(during.claim).toBeLessThan(before.claim + events / 50)
  expect(during.empty).toBeLessThan(before.empty + events / 100)
  expect(Math.max(vacuumed.first, vacuumed.claim)).toBeLessThan(2 * before.claim)
  expect(vacuumed.empty).toBeLessThan(2 * before.empty)
  expect(await backlog(session)).toMatchObject({ due: events, held: events, backing_off: 0 })

  while ((await unhold(session, 'A', 1000)) > 0);
  const rows = await drain(session)
  expect(rows).toHaveLength(events)
  expect(outOfOrder(rows)).toBe(0)
  expect(await queued(session)).toBe(0)
  expect(await stateOf(session)).toEqual(soundState)
})

test('a key with a long chain of followers moves aside in few claims, and comes back in order', async () => {
  const followers = events / 4
  await emptyOutbox(session)
  await add(session, followers, { key: `'hot'` })
  const head = await claim(session, { rows: 1, keyRows: 1 })
  await settle(session, head.token, null, [hold(head.rows[0]!, 'A')])
  let claims = 0
  for (; (await count(session, 'outbox_delivery WHERE lane = 0')) > 0; claims++) await claim(session)
  expect(claims).toBeLessThanOrEqual(Math.ceil(followers / 10_000)) // 20 looks of 500 a claim
  await unhold(session, 'A')
  const rows = await drain(session)
  expect(rows).toHaveLength(followers)
  expect(outOfOrder(rows)).toBe(0)
})

test('an operation on 100 keys does not depend on how many events are held behind others', async () => {
  const operatePages = (action: string) =>
    pagesOf(session, `SELECT outbox_operate($1, '{}', 100, false, 'ann', 'test')`, [action])
  const failHeads = async (from: Session, followers: number) => {
    await emptyOutbox(from)
    for (let round = 0; round <= followers; round++) await add(from, 500, { key: `'k' || i`, from: 1 })
    for (;;) {
      const { token, rows } = await claim(from, { keyRows: 1 })
      if (rows.length === 0 && (await count(from, 'outbox_delivery WHERE lane = 0')) === 0) return
      await settle(
        from,
        token,
        null,
        rows.map((event) => fail(event)),
      )
    }
  }
  await failHeads(session, 0)
  const alone = await operatePages('redrive')
  await failHeads(session, events / 1000)
  await operate(session, 'release', {}, { rows: 1 }) // plans are made
  const beside = await operatePages('redrive')
  console.log('redrive of 100 keys, pages', JSON.stringify({ alone, beside }))
  expect(beside).toBeLessThan(4 * alone)
})
