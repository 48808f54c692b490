import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  claim,
  emptyOutbox,
  expireLeases,
  hold,
  outboxDatabase,
  published,
  retry,
  settle,
  soundState,
  stateOf,
  unhold,
  waitsForLock,
  type Session,
} from '../../support/outbox-sql.js'

const database = await outboxDatabase('circuits')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

interface Answer {
  readonly changed: boolean
  readonly circuits: string | null
}
/** Of whoever leases the event. */
const tokenOf = `(SELECT s.lease_token FROM outbox_shard s JOIN outbox_delivery d USING (shard) WHERE d.event_id = CAST($1 AS uuid))`
const fault = async (event: string, failures = 0, coolDownMs = 60_000, by: Session = session) =>
  (
    await by.query(
      `SELECT * FROM outbox_circuit_fault(${tokenOf}, 'D', CAST($1 AS uuid), $2, $3, false, 'ServiceUnavailable', 'down')`,
      [event, failures, coolDownMs],
    )
  )[0] as unknown as Answer
const close = async (event: string | null, by: Session = session) =>
  (await by.query(`SELECT * FROM outbox_circuit_close(${tokenOf}, 'D', CAST($1 AS uuid))`, [event]))[0] as unknown as Answer
const states = async (by: Session = session) =>
  JSON.parse((await by.one<string | null>(`SELECT outbox_circuits('{}', 1)`)) ?? '[]') as {
    readonly state: string
    readonly failures: number
    readonly probeEvent: string | null
    readonly aside: boolean
  }[]

/** Claims what there is; puts all but the first aside, which is the probe. */
async function open(events = 10) {
  await add(session, events)
  const { token, rows } = await claim(session)
  const [probe, ...others] = rows
  await fault(probe!.id)
  await settle(session, token, null, [retry(probe!, 60_000, 'free'), ...others.map((event) => hold(event))])
  return { probe: probe!, others }
}
const coolDownIsOver = () =>
  session.query(`UPDATE outbox_circuit SET retry_at = clock_timestamp();
                 UPDATE outbox_delivery SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL`)

describe('a fault', () => {
  test('opens the circuit, and changes nothing when its answer was lost and it is sent again', async () => {
    await add(session, 2)
    const { rows } = await claim(session)
    const [probe] = rows
    expect(await fault(probe!.id)).toMatchObject({ changed: true })
    expect(await fault(probe!.id)).toMatchObject({ changed: false })
    expect(await states()).toMatchObject([{ state: 'open', failures: 1, probeEvent: probe!.id }])
  })

  test('or a success that a relay reports without its lease changes nothing', async () => {
    await add(session, 2)
    const { token, rows } = await claim(session)
    await settle(session, token, null)
    expect(await fault(rows[0]!.id)).toMatchObject({ changed: false })
    expect(await states()).toEqual([])
    await claim(session)
    await fault(rows[0]!.id)
    await expireLeases(session)
    const zombie = `SELECT changed FROM outbox_circuit_close(CAST($1 AS uuid), 'D', CAST($2 AS uuid))`
    expect(await session.one(zombie, [token, rows[0]!.id])).toBe(false)
    expect(await states()).toMatchObject([{ state: 'open' }])
  })

  test('that another relay reports at the same time names the same probe', async () => {
    await add(session, 2)
    const { rows } = await claim(session)
    const others = [await database.open(), await database.open()]
    const answers = await Promise.all(others.map((by, n) => fault(rows[n]!.id, 0, 60_000, by)))
    expect(answers.filter(({ changed }) => changed)).toHaveLength(1)
    const [{ probeEvent } = { probeEvent: '' }] = await states()
    expect(answers.every(({ circuits }) => circuits?.includes(probeEvent ?? '') === true)).toBe(true)
  })

  test('of the probe lets the next event that is aside be the probe, one after the other and round again', async () => {
    const { probe, others } = await open(4)
    const seen = [probe.id]
    for (let failures = 1; failures <= 5; failures++) {
      await coolDownIsOver()
      const { token, rows } = await claim(session)
      expect(rows.map(({ id }) => id)).toEqual([seen.at(-1)])
      await fault(rows[0]!.id, failures)
      await settle(session, token, null, [hold(rows[0]!)])
      seen.push((await states())[0]!.probeEvent!)
    }
    expect(seen).toEqual([probe.id, ...others.map(({ id }) => id), probe.id, others[0]!.id])
    expect(await states()).toMatchObject([{ failures: 6 }])
  })

  test('is tried with another probe while the probe waits behind suspects', async () => {
    const { probe, others } = await open()
    await coolDownIsOver()
    // an event of the probe's shard was in hand when its relay ended
    await session.query(
      `UPDATE outbox_shard SET handed = ARRAY[0], lease_token = gen_random_uuid(), lease_until = clock_timestamp() - interval '1 second'
        WHERE shard = (SELECT shard FROM outbox_delivery WHERE event_id = $1)`,
      [probe.id],
    )
    expect(await states()).toMatchObject([{ state: 'half-open', probeEvent: others[0]!.id }])
    await session.query(`UPDATE outbox_shard SET handed = '{}'`)
    expect(await states()).toMatchObject([{ probeEvent: others[0]!.id }])
  })

  test('of an event that is not the probe any more changes nothing', async () => {
    const { probe, others } = await open()
    await session.query('UPDATE outbox_shard SET lease_token = gen_random_uuid()') // whoever reports it has a lease
    expect(await fault(others[0]!.id, 1)).toMatchObject({ changed: false })
    expect(await close(others[0]!.id)).toMatchObject({ changed: false })
    expect(await states()).toMatchObject([{ probeEvent: probe.id, failures: 1 }])
  })
})

describe('an open circuit', () => {
  test('brings nothing back, and hands out its probe alone, when the cool-down is over', async () => {
    const { probe } = await open()
    expect(await unhold(session)).toBe(0)
    expect((await claim(session)).rows).toEqual([])
    await coolDownIsOver()
    expect(await states()).toMatchObject([{ state: 'half-open' }])
    expect((await claim(session)).rows.map(({ id }) => id)).toEqual([probe.id])
    expect((await claim(session)).rows).toEqual([])
  })

  test('is closed by its probe: all come back in order', async () => {
    const { probe, others } = await open()
    await coolDownIsOver()
    const { token, rows } = await claim(session)
    expect(await close(probe.id)).toMatchObject({ changed: true })
    await settle(session, token, published(rows))
    expect(await unhold(session, 'D', 4)).toBe(4)
    expect((await claim(session)).rows.map(({ id }) => id)).toEqual(others.slice(0, 4).map(({ id }) => id))
    expect(await unhold(session)).toBe(5)
    expect(await states()).toEqual([])
    expect(await stateOf(session)).toEqual(soundState)
  })

  test('is shown to whoever claims events, of whatever destination', async () => {
    const { probe } = await open()
    await add(session, 3, { type: 'Other' })
    const { rows } = await claim(session)
    expect(rows).toHaveLength(3)
    const shown = rows.map(({ circuits }) => circuits).filter((circuits) => circuits !== null)
    expect(shown).toHaveLength(1)
    expect(JSON.parse(shown[0]!)).toMatchObject([{ destination: 'D', state: 'open', probeEvent: probe.id, aside: true }])
  })
})

describe('a probe that waits for something else', () => {
  test('gives way, so that the circuit does not stay open for an event that is routed nowhere now', async () => {
    const { probe, others } = await open(3)
    await coolDownIsOver()
    const { token, rows } = await claim(session)
    expect(rows.map(({ id }) => id)).toEqual([probe.id])
    await settle(session, token, null, [retry(probe, 60_000, 'free')]) // no route
    expect(await states()).toMatchObject([{ state: 'half-open', probeEvent: others[0]!.id }])
    expect((await claim(session)).rows.map(({ id }) => id)).toEqual([others[0]!.id])
  })
})

describe('what is aside', () => {
  test('comes back while a settlement that puts more aside holds a shard: neither waits for the other', async () => {
    await add(session, 32)
    const before = await claim(session)
    await settle(
      session,
      before.token,
      null,
      before.rows.map((event) => hold(event)),
    )
    await add(session, 1, { type: 'New' })
    const { token, rows } = await claim(session)
    const [releasing, observer] = [await database.open(), await database.open()]
    const backend = await releasing.one<number>('SELECT pg_backend_pid()')
    await session.query('BEGIN')
    await session.query('SELECT FROM outbox_shard WHERE lease_token IS NOT NULL FOR UPDATE')
    const released = releasing.query(`SELECT outbox_circuits('{"D": 32}', 100000)`)
    await waitsForLock(observer, backend)
    await settle(session, token, null, [hold(rows[0]!)])
    await session.query('COMMIT')
    await released
    expect(await session.one<number>('SELECT CAST(count(*) AS integer) FROM outbox_delivery WHERE released')).toBe(32)
  })

  test('comes back, and nothing overflows, though the clock was set back by a day', async () => {
    await open(10)
    await close(null)
    await session.query(`UPDATE outbox_circuit SET released_at = clock_timestamp() + interval '1 day'`)
    await session.query(`SELECT outbox_circuits('{"D": 10}', 100000)`)
    await session.query('SELECT pg_sleep(0.01)')
    expect(await unhold(session)).toBe(9)
  })

  test('always has a circuit that brings it back, though nothing failed', async () => {
    await add(session, 5)
    const { token, rows } = await claim(session)
    await settle(
      session,
      token,
      null,
      rows.map((event) => hold(event)),
    )
    expect(await states()).toMatchObject([{ state: 'closed', failures: 0, probeEvent: null, aside: true }])
    expect(await unhold(session)).toBe(5)
    expect((await claim(session)).rows.every(({ released }) => released)).toBe(true)
  })

  test('comes back no faster than so many a second, in all calls together', async () => {
    await open(101)
    await close(null)
    const calls = [await database.open(), await database.open(), await database.open()]
    await Promise.all(calls.map((by) => by.query(`SELECT outbox_circuits('{"D": 1000}', 10)`)))
    await Promise.all(calls.map((by) => by.query(`SELECT outbox_circuits('{"D": 1000}', 10)`)))
    const back = await session.one<number>(`SELECT CAST(count(*) AS integer) FROM outbox_delivery WHERE released`)
    expect(back).toBeGreaterThanOrEqual(10)
    // a second's worth at once, and what these calls took
    expect(back).toBeLessThanOrEqual(30)
  })

  test('comes back while others claim, settle, open and close, of several destinations, without a deadlock', async () => {
    await add(session, 400, { key: `'k' || (i % 60)` })
    const sessions = await Promise.all(Array.from({ length: 6 }, () => database.open()))
    const events = new Map<string, number>()
    let turns = 0
    await Promise.all(
      sessions.map(async (by, n) => {
        for (let turn = 0; turn < 60; turn++) {
          const { token, rows } = await claim(by, { rows: 40 })
          const target = (id: string) => (id < '8' ? 'D' : 'E')
          if (n % 2 === 0) {
            for (const { id } of rows.slice(0, 1)) await fault(id, 0, 1, by)
            await settle(
              by,
              token,
              null,
              rows.map((event) => hold(event, target(event.id))),
            )
          } else {
            await settle(by, token, published(rows))
            for (const { id } of rows) events.set(id, (events.get(id) ?? 0) + 1)
          }
          await by.query(`SELECT outbox_circuits('{"D": 30, "E": 30}', 100000)`)
          await close(null, by)
          turns += 1
        }
      }),
    )
    expect(turns).toBe(360)
    for (let round = 0; round < 200; round++) {
      await close(null)
      await session.query(`SELECT outbox_circuits('{"D": 1000, "E": 1000}', 100000000)`)
      const { token, rows } = await claim(session)
      await settle(session, token, published(rows))
      for (const { id } of rows) events.set(id, (events.get(id) ?? 0) + 1)
      if (events.size === 400) break
    }
    expect(events.size).toBe(400)
    expect([...events.values()].every((times) => times === 1)).toBe(true)
    expect(await stateOf(session)).toEqual(soundState)
  })
})
