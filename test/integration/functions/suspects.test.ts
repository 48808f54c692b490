import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  claim,
  count,
  drain,
  emptyOutbox,
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
  retry,
  settle,
  soundState,
  start,
  stateOf,
  type ClaimedRow,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('suspects')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

const key3 = await keyOf(session, 3)
const alone = { suspectLeaseSeconds: 10 } as const
const seqs = (rows: readonly ClaimedRow[]) => rows.map(({ seq }) => seq)
const startsOf = (id: string) => session.one<number>('SELECT starts FROM outbox_delivery WHERE event_id = $1', [id])
const suspects = () =>
  session.one<number>('SELECT sum(cardinality(handed)) FROM outbox_shard WHERE lease_until <= clock_timestamp()')

/** A relay takes what is due, and ends. */
async function crash(options: Parameters<typeof claim>[1] = {}): Promise<readonly ClaimedRow[]> {
  const { rows } = await claim(session, options)
  await expireLeases(session)
  return rows
}

/** One suspect is served, and its relay ends with it. */
async function crashAlone(): Promise<ClaimedRow> {
  const { token, rows } = await claim(session, alone)
  expect(rows).toHaveLength(1)
  expect(await start(session, token, rows[0]!.id)).toBe(true)
  await expireLeases(session)
  return rows[0]!
}

describe('what a relay had in hand when its lease ran out', () => {
  test('comes one event at a time, each with a lease of its own, and only to a relay that has nothing else in hand', async () => {
    await add(session, 40, { key: `'${key3}'` })
    await crash({ rows: 4 })
    expect((await claim(session)).rows).toEqual([])
    const first = await claim(session, { ...alone, shards: 16 })
    expect(first.rows).toMatchObject([{ reclaimed_from: 'test', starts: 0 }])
    expect(await session.one('SELECT extract(epoch FROM lease_until - served_at)::int FROM outbox_shard WHERE shard = 3')).toBe(
      10,
    )
    expect((await claim(session, alone)).rows).toEqual([])
    await settle(session, first.token, published(first.rows))
    for (let left = 3; left > 0; left--) {
      const { token, rows } = await claim(session, alone)
      expect(rows).toMatchObject([{ reclaimed_from: 'test' }])
      await settle(session, token, published(rows))
    }
    // all four are through: the others come together, to anybody
    const { rows } = await claim(session)
    expect(rows.map(({ reclaimed_from }) => reclaimed_from)).toEqual(Array.from({ length: 36 }, () => null))
    expect(await session.one('SELECT count(*) FROM outbox_receipt')).toBe(4)
  })

  test('leaves other shards free, for any relay', async () => {
    await add(session, 5, { key: `'${key3}'` })
    await crash()
    await add(session, 20, { from: 6 })
    const others = await claim(session)
    expect(others.rows).toHaveLength(await session.one('SELECT count(*) FROM outbox_delivery WHERE shard <> 3'))
    expect(others.rows.every(({ shard }) => shard !== 3)).toBe(true)
    expect((await claim(session, alone)).rows.map(({ shard }) => shard)).toEqual([3])
  })

  test('does not hold what was never in hand: scheduled, released or redriven events of the shard', async () => {
    await add(session, 3, { key: `'${key3}'` })
    const first = await claim(session)
    await settle(session, first.token, null, [fail(first.rows[0]!, 'skip'), hold(first.rows[1]!)])
    await add(session, 1, { key: `'${key3}x'`, from: 9, columns: { available_at: `now() + interval '1 hour'` } })
    const other = await keyOf(session, 3, 1)
    await add(session, 2, { key: `'${other}'`, from: 20 })
    const inHand = await crash()
    await operate(session, 'redrive')
    const served: ClaimedRow[] = []
    for (let turn = 0; turn < inHand.length; turn++) {
      const { token, rows } = await claim(session, alone)
      expect(rows).toHaveLength(1)
      expect(rows[0]!.reclaimed_from).toBe('test')
      served.push(...rows)
      await settle(session, token, published(rows))
    }
    expect(seqs(served)).toEqual(seqs(inHand))
    expect(await suspects()).toBe(0)
    expect((await claim(session)).rows[0]).toMatchObject({ seq: first.rows[0]!.seq, reclaimed_from: null })
  })

  test('are retries that were due as well, whatever their seq', async () => {
    await add(session, 3, { key: `'${key3}'` })
    const first = await claim(session)
    await settle(session, first.token, null, [retry(first.rows[0]!)])
    await add(session, 2, { key: `'${await keyOf(session, 3, 1)}'`, from: 9 })
    const inHand = await crash()
    expect(inHand.map(({ attempts }) => attempts)).toEqual([1, 0, 0])
    const { rows } = await claim(session, alone)
    expect(seqs(rows)).toEqual([inHand[0]!.seq])
  })

  test('is what is still in hand: neither what was settled before, nor what a later claim of the same token did not bring', async () => {
    await add(session, 6, { key: `'${key3}'` })
    const batch = await claim(session, { rows: 4 })
    await settle(session, batch.token, published(batch.rows.slice(0, 2)), null, [])
    const more = await claim(session, { token: batch.token, rows: 1, inFlight: batch.rows.slice(2).map(({ id }) => id) })
    expect(more.rows).toHaveLength(1)
    await expireLeases(session)
    const served: number[] = []
    for (;;) {
      const { token, rows } = await claim(session, alone)
      if (rows.every((event) => event.reclaimed_from === null)) break
      served.push(...seqs(rows))
      await settle(session, token, published(rows))
    }
    expect(served).toEqual(seqs([...batch.rows.slice(2), ...more.rows]))
  })

  test('keeps the order of its key: behind one that is retried, the others wait', async () => {
    await add(session, 5, { key: `'${key3}'` })
    await crash()
    const first = await claim(session, alone)
    await settle(session, first.token, null, [retry(first.rows[0]!, 60_000)])
    expect((await claim(session, alone)).rows).toEqual([])
    expect(await count(session, `outbox_delivery WHERE held_by = 'key'`)).toBe(4)
    await session.query('UPDATE outbox_delivery SET retry_at = now() WHERE lane = 1')
    expect(outOfOrder(await drain(session, alone))).toBe(0)
    expect(await queued(session)).toBe(0)
    expect(await stateOf(session)).toEqual(soundState)
  })

  test('is told of to relays that are busy, once nobody has served it for a second', async () => {
    await add(session, 5, { key: `'${key3}'` })
    await add(session, 5, { key: `'${await keyOf(session, 5)}'`, from: 6 })
    await crash({ shards: 1 })
    const told = async () => {
      const batch = await claim(session)
      await giveBack(session, batch)
      return batch.rows.map(({ suspects_wait }) => suspects_wait)
    }
    expect(await told()).toEqual(Array.from({ length: 5 }, () => false))
    await session.query(`UPDATE outbox_shard SET served_at = now() - interval '1001 milliseconds'`)
    expect(await told()).toEqual(Array.from({ length: 5 }, () => true))
    await giveBack(session, await claim(session, alone))
    expect(await told()).toEqual(Array.from({ length: 5 }, () => false))
  })
})

describe('no suspicion', () => {
  test('comes of a lease that was renewed, or of a settlement after its time that came before anybody else', async () => {
    await add(session, 10, { key: `'${key3}'` })
    const batch = await claim(session)
    await expireLeases(session)
    expect(await renew(session, batch.token)).toBe(1)
    expect((await claim(session, alone)).rows).toEqual([])
    await expireLeases(session)
    await settle(session, batch.token, published(batch.rows.slice(0, 3)))
    const next = await claim(session)
    expect(next.rows.map(({ reclaimed_from, starts }) => [reclaimed_from, starts])).toEqual(
      Array.from({ length: 7 }, () => [null, 0]),
    )
  })

  test('comes of a claim whose answer was lost and that was given back by its token, or of its repeat', async () => {
    await add(session, 3, { key: `'${key3}'` })
    const lost = randomUUID()
    await claim(session, { token: lost })
    await settle(session, lost, null)
    expect((await claim(session)).rows).toHaveLength(3)
  })

  test('remains of a lease that ran out when all its events had been settled', async () => {
    await add(session, 3, { key: `'${key3}'` })
    const batch = await claim(session)
    await settle(session, batch.token, published(batch.rows), null, [])
    await add(session, 3, { key: `'${key3}'`, from: 4 })
    await expireLeases(session)
    expect((await claim(session, alone)).rows.map(({ reclaimed_from }) => reclaimed_from)).toEqual([null, null, null])
  })
})

describe('a crash', () => {
  test('is counted for the one event that was started, each time its relay ends without a word, and for no other', async () => {
    await add(session, 4, { key: `'${key3}'` })
    const [suspect, ...others] = await crash()
    for (const starts of [0, 1, 2]) expect(await crashAlone()).toMatchObject({ id: suspect!.id, starts })
    const last = await claim(session, { ...alone, token: randomUUID() })
    expect(last.rows).toMatchObject([{ id: suspect!.id, starts: 3, reclaimed_from: 'test' }])
    await settle(session, last.token, null, [fail(suspect!, 'skip')])
    expect(await startsOf(suspect!.id)).toBe(0)
    for (const { id } of others) expect(await startsOf(id)).toBe(0)
    const rest = await drain(session, alone)
    expect(rest.map(({ id, starts }) => [id, starts])).toEqual(others.map(({ id }) => [id, 0]))
  })

  test('is not counted if a settlement gave the event back, sent or not: then its relay lived', async () => {
    await add(session, 2, { key: `'${key3}'` })
    const [suspect] = await crash()
    await crashAlone()
    expect(await startsOf(suspect!.id)).toBe(1)
    for (let turn = 0; turn < 4; turn++) {
      const { token, rows } = await claim(session, alone)
      expect(rows).toMatchObject([{ id: suspect!.id, starts: 1 }])
      await start(session, token, suspect!.id)
      expect(await startsOf(suspect!.id)).toBe(2)
      await settle(session, token, null, null, turn % 2 === 0 ? null : [3])
    }
    expect(await startsOf(suspect!.id)).toBe(1)
  })

  test('is not counted, and nothing is a suspect, when the server went down after the lease began', async () => {
    await add(session, 3, { key: `'${key3}'` })
    const [suspect] = await crash()
    await crashAlone()
    const { token } = await claim(session, alone)
    expect(await start(session, token, suspect!.id)).toBe(true)
    expect(await startsOf(suspect!.id)).toBe(2)
    await expireLeases(session)
    await session.query(`UPDATE outbox_shard SET served_at = pg_postmaster_start_time() - interval '1 millisecond'`)
    const { rows } = await claim(session, alone)
    // the crash before stays counted
    expect(rows.map(({ starts, reclaimed_from }) => [starts, reclaimed_from])).toEqual([
      [1, null],
      [0, null],
      [0, null],
    ])
  })

  test('is still counted after a settlement that keeps the shard', async () => {
    await add(session, 1, { key: `'${key3}'` })
    const [suspect] = await crash()
    const { token } = await claim(session, alone)
    await start(session, token, suspect!.id)
    await settle(session, token, null, null, [])
    expect(await startsOf(suspect!.id)).toBe(1)
  })

  test.each([
    ['a retry', 0, (event: ClaimedRow) => retry(event)],
    ['a failure', 0, (event: ClaimedRow) => fail(event)],
    ['a hold of what was sent', 0, (event: ClaimedRow) => ({ ...hold(event), errorCode: 'Timeout' })],
    ['a hold of what was not sent, as far as it was counted for that', 1, (event: ClaimedRow) => hold(event)],
  ])('is forgotten with %s', async (_, left, outcome) => {
    await add(session, 1, { key: `'${key3}'` })
    const [suspect] = await crash()
    await crashAlone()
    const { token, rows } = await claim(session, alone)
    await start(session, token, suspect!.id)
    await settle(session, token, null, [outcome(rows[0]!)])
    expect(await startsOf(suspect!.id)).toBe(left)
  })

  test('is not counted for a claim of a suspect whose answer was lost, repeated or late, or by whoever comes too late', async () => {
    await add(session, 1, { key: `'${key3}'` })
    const [suspect] = await crash()
    const lost = await claim(session, alone)
    expect((await claim(session, { ...alone, token: lost.token })).rows).toEqual(lost.rows)
    await expireLeases(session)
    const next = await claim(session, alone)
    expect(next.rows).toMatchObject([{ id: suspect!.id, starts: 0 }])
    expect(await start(session, lost.token, suspect!.id)).toBe(false)
    expect(await settle(session, lost.token, published(lost.rows))).toMatchObject({ published: 0, given_back: 0 })
    expect(await startsOf(suspect!.id)).toBe(0)
  })
})
