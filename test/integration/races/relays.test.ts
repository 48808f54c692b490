import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  backendOf,
  claim,
  clearSuspicion,
  count,
  drain,
  emptyOutbox,
  eventually,
  expireLeases,
  fail,
  giveBack,
  hold,
  keyOf,
  operate,
  outboxDatabase,
  published,
  queued,
  renew,
  retry,
  settle,
  soundState,
  sqlStateOf,
  start,
  stateOf,
  waitsForLock,
  type Claim,
  type Session,
} from '../../support/outbox-sql.js'

// Forced interleavings: a session of the test holds a shard's lock, so that two calls meet in a chosen order.
const database = await outboxDatabase('races')
const [observer, a, b, c, blocker] = [
  await database.open(),
  await database.open(),
  await database.open(),
  await database.open(),
  await database.open(),
]
const [backendOfA, backendOfB] = [await backendOf(a), await backendOf(b)]
const [key3, key5] = [await keyOf(observer, 3), await keyOf(observer, 5)]
beforeEach(() => emptyOutbox(observer))

/** A relay that has nothing else in hand takes suspects too. */
const suspects = { suspectLeaseSeconds: 30 } as const
const lockShards = async (...shards: number[]) => {
  await blocker.query('BEGIN')
  await blocker.query('SELECT FROM outbox_shard WHERE shard = ANY ($1) FOR UPDATE', [shards])
}
const unlockShards = () => blocker.query('COMMIT')
/** Until a call that should wait for a lock does, or is over because it need not. */
const endsOrWaits = (call: Promise<unknown>, backend: number) => {
  let hasEnded = false
  void call.finally(() => (hasEnded = true))
  const waits = `SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1`
  return eventually(async () => hasEnded || (await observer.one<boolean>(waits, [backend])))
}

describe('a late settlement and a claim of the same shard', () => {
  test('what the settlement published is not handed out, and a locked shard is passed over', async () => {
    await add(observer, 40, { key: `'${key3}'` })
    await add(observer, 40, { key: `'${key5}'` })
    const late = await claim(a, { rows: 30 })
    await expireLeases(observer)
    const mine = late.rows.filter(({ shard }) => shard === 3)
    await lockShards(3)
    const settling = settle(a, late.token, published(mine))
    await waitsForLock(observer, backendOfA)
    const other = await claim(b, suspects)
    expect(other.rows.map(({ shard }) => shard)).toEqual(Array.from({ length: 40 }, () => 5))
    await unlockShards()
    expect(await settling).toMatchObject({ published: mine.length })

    const rest = await claim(c)
    expect(rest.rows.filter(({ id }) => mine.some((event) => event.id === id))).toEqual([])
    await settle(b, other.token, published(other.rows))
    await settle(c, rest.token, published(rest.rows))
    expect(await queued(observer)).toBe(0)
    expect(await count(observer, 'outbox_receipt')).toBe(80)
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test.each([
    ['publishes', (events: Claim['rows']) => [published(events), null, events] as const],
    ['fails', (events: Claim['rows']) => [null, [fail(events[0]!)], events] as const],
    ['retries', (events: Claim['rows']) => [null, [retry(events[0]!, 60_000)], events] as const],
    ['holds', (events: Claim['rows']) => [null, [hold(events[0]!)], events] as const],
  ])('whichever wins: what a settlement %s is not handed out, 40 times', async (_, outcomes) => {
    for (let round = 0; round < 40; round++) {
      await emptyOutbox(observer)
      await add(observer, 5, { key: `'${key3}'` })
      const late = await claim(a, { leaseSeconds: 0 })
      const [done, changes, guarded] = outcomes(late.rows)
      const calls = [() => settle(a, late.token, done, changes), () => claim(b, suspects)] as const
      const [settled, taken] =
        round % 2 === 0
          ? await Promise.all([calls[0](), calls[1]()])
          : ((await Promise.all([calls[1](), calls[0]()])).reverse() as [Awaited<ReturnType<typeof settle>>, Claim])
      const changed = settled.published + settled.failed + settled.retried + settled.held > 0
      if (changed) expect(taken.rows.filter(({ id }) => guarded.some((event) => event.id === id))).toEqual([])
      await giveBack(b, taken)
    }
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('claim first: the settlement waits for it and changes nothing', async () => {
    await add(observer, 5, { key: `'${key3}'` })
    const late = await claim(a, { leaseSeconds: 0 })
    await b.query('BEGIN')
    const taken = await claim(b, suspects)
    const settling = settle(a, late.token, published(late.rows))
    await waitsForLock(observer, backendOfA)
    await b.query('COMMIT')
    expect(taken.rows.map(({ reclaimed_from }) => reclaimed_from)).toEqual(['test'])
    expect(await settling).toMatchObject({ published: 0, given_back: 0 })
  })

  test('claim first, but still looking: the settlement waits for it and changes nothing', async () => {
    const failing = await keyOf(observer, 3, 1)
    await add(observer, 1, { key: `'${failing}'` })
    const first = await claim(a)
    await settle(a, first.token, null, [fail(first.rows[0]!)])
    await add(observer, 1, { key: `'${key3}'` })
    const late = await claim(a)
    // as after a restart of the server: the lease is over and nothing is suspected, though its relay lives
    await expireLeases(observer)
    await clearSuspicion(observer)
    // the claim comes upon a follower of what failed, and has to wait before it can move that out of the way
    await add(observer, 1, { key: `'${failing}'`, from: 2 })
    await blocker.query('BEGIN')
    await blocker.query('SELECT FROM outbox_delivery WHERE lane = 0 AND ordering_key = $1 FOR UPDATE', [failing])
    const claiming = claim(b)
    await waitsForLock(observer, backendOfB)
    const settling = settle(a, late.token, null, [fail(late.rows[0]!)])
    await endsOrWaits(settling, backendOfA)
    await blocker.query('COMMIT')
    expect((await claiming).rows.map(({ id }) => id)).toEqual(late.rows.map(({ id }) => id))
    expect(await settling).toMatchObject({ failed: 0, given_back: 0 })
    expect(await stateOf(observer)).toEqual(soundState)
  })

  test('settlement first: the claim passes the shard over, and then finds nothing', async () => {
    await add(observer, 5, { key: `'${key3}'` })
    const late = await claim(a, { leaseSeconds: 0 })
    await a.query('BEGIN')
    await settle(a, late.token, published(late.rows))
    expect((await claim(b, suspects)).rows).toEqual([])
    await a.query('COMMIT')
    expect((await claim(b, suspects)).rows).toEqual([])
  })
})

test('of two claims of one shard the second gets nothing, though the lease of the first is not committed yet', async () => {
  await add(observer, 5, { key: `'${key3}'` })
  await a.query('BEGIN')
  const first = await claim(a)
  const second = claim(b)
  await endsOrWaits(second, backendOfB)
  await a.query('COMMIT')
  expect([first.rows.length, (await second).rows.length]).toEqual([5, 0])
})

test('a second claim gets the other shards while the transaction of the first is open, which locks no more than it may lease', async () => {
  await add(observer, 160)
  await a.query('BEGIN')
  const first = await claim(a, { shards: 4 })
  const second = claim(b)
  await endsOrWaits(second, backendOfB)
  await a.query('COMMIT')
  const shards = [first, await second].map(({ rows }) => [...new Set(rows.map(({ shard }) => shard))])
  expect(shards.map(({ length }) => length)).toEqual([4, 12])
  expect(new Set(shards.flat()).size).toBe(16)
})

describe('one token, twice in flight', () => {
  test('two claims: one settlement gives back all that they lease', async () => {
    await add(observer, 400)
    const token = randomUUID()
    const few = { token, shards: 4, rows: 50 }
    const [x, y] = await Promise.all([claim(a, few), claim(b, few)])
    const events = [...new Map([...x.rows, ...y.rows].map((event) => [event.id, event])).values()]
    expect(await settle(a, token, published(events))).toMatchObject({ published: events.length })
    expect(await count(observer, 'outbox_shard WHERE lease_token IS NOT NULL')).toBe(0)
  })

  test('a claim that comes after its settlement gets nothing, and leases nothing', async () => {
    await add(observer, 400)
    const { token, rows } = await claim(a, { shards: 4, rows: 50 })
    await settle(a, token, published(rows))
    expect((await claim(b, { token })).rows).toEqual([])
    expect(await count(observer, 'outbox_shard WHERE lease_token IS NOT NULL')).toBe(0)
  })

  test('two settlements publish each event once, and the second knows that it is a repeat', async () => {
    await add(observer, 100)
    const { token, rows } = await claim(a)
    const answers = await Promise.all([settle(a, token, published(rows)), settle(b, token, published(rows))])
    expect(answers[0].published + answers[1].published).toBe(100)
    expect(Math.max(...answers.map((answer) => answer.settled_before))).toBe(16)
    expect(await stateOf(observer)).toEqual(soundState)
  })
})

describe('a renewal', () => {
  test('against a claim after the lease ran out: exactly one of them wins, 60 times', async () => {
    for (let round = 0; round < 60; round++) {
      await emptyOutbox(observer)
      await add(observer, 5, { key: `'${key3}'` })
      const late = await claim(a, { leaseSeconds: 0 })
      const [renewed, taken] = await Promise.all([renew(a, late.token), claim(b, suspects)])
      expect([renewed, taken.rows.length]).toEqual(renewed === 1 ? [1, 0] : [0, 1])
    }
  })

  test('tells that one of two shards was lost', async () => {
    await add(observer, 5, { key: `'${key3}'` })
    await add(observer, 5, { key: `'${key5}'` })
    const late = await claim(a, { leaseSeconds: 0 })
    await lockShards(3)
    const taken = await claim(b, suspects)
    await unlockShards()
    expect(taken.rows.map(({ shard }) => shard)).toEqual([5])
    expect(await renew(a, late.token)).toBe(1)
  })

  test('tells so even if the token leases a shard that the batch does not have', async () => {
    await add(observer, 5, { key: `'${key3}'` })
    await add(observer, 5, { key: `'${key5}'` })
    const token = randomUUID()
    await claim(a, { token }) // its answer is lost
    await add(observer, 600, { key: `'${key3}'`, from: 6 })
    const batch = await claim(a, { token, rows: 100 })
    const mine = [...new Set(batch.rows.map(({ shard }) => shard))]
    expect(await observer.one('SELECT count(*) FROM outbox_shard WHERE lease_token = $1', [token])).toBe(2)
    await expireLeases(observer)
    await lockShards(...[3, 5].filter((shard) => shard !== mine[0]))
    await claim(b, suspects)
    await unlockShards()
    expect(await renew(a, token, mine)).toBeLessThan(mine.length)
  })
})

describe('calls that lock two shards', () => {
  const shuffleRows = () =>
    observer.query(
      `BEGIN; CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM outbox_shard; TRUNCATE outbox_shard;
       INSERT INTO outbox_shard SELECT * FROM kept ORDER BY shard DESC; COMMIT; ANALYZE outbox_shard`,
    )
  const calls = {
    renew: (session: Session, { token }: Claim) => renew(session, token),
    start: (session: Session, { token, rows }: Claim) => start(session, token, rows.find(({ shard }) => shard === 3)!.id),
    redrive: (session: Session) => operate(session, 'redrive'),
    settle: (session: Session, { token, rows }: Claim) => settle(session, token, published(rows)),
    'a repeated claim': (session: Session, { token }: Claim) => claim(session, { token }),
  } as const

  // they meet once before their first shard, once between the two
  const pairs = (['renew', 'start'] as const).flatMap((one) =>
    (['redrive', 'settle', 'a repeated claim'] as const).flatMap((other) => [3, 5].map((held) => [one, other, held] as const)),
  )
  test.each(pairs)('do not deadlock, whatever the order of the rows: %s against %s at shard %i', async (one, other, held) => {
    await add(observer, 2, { key: `'${key3}'` })
    await add(observer, 2, { key: `'${key5}'` })
    const first = await claim(a)
    const heads = [3, 5].map((shard) => first.rows.find((event) => event.shard === shard)!)
    await settle(
      a,
      first.token,
      null,
      heads.map((event) => fail(event, 'skip')),
    )
    const batch = await claim(a)
    await shuffleRows()
    await lockShards(held)
    const second = sqlStateOf(calls[other](b, batch))
    await waitsForLock(observer, backendOfB)
    const third = sqlStateOf(calls[one](a, batch))
    await waitsForLock(observer, backendOfA)
    await unlockShards()
    expect(await Promise.all([second, third])).toEqual(['ok', 'ok'])
  })
})

test('events that two relays drain at once are each published once', async () => {
  await add(observer, 2000, { key: `'k' || i % 100` })
  const [x, y] = await Promise.all([drain(a, { shards: 2 }), drain(b, { shards: 2 })])
  const ids = [...x, ...y].map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  await drain(c)
  expect(await count(observer, 'outbox_receipt')).toBe(2000)
})
