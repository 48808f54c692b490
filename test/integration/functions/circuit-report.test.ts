import { beforeEach, expect, test } from 'vitest'
import { add, claim, count, emptyOutbox, hold, keyOf, outboxDatabase, retry, settle } from '../../support/outbox-sql.js'

const database = await outboxDatabase('report')
const session = await database.open()
beforeEach(async () => {
  await emptyOutbox(session)
  await session.query('DELETE FROM outbox_circuit')
})

interface Report {
  readonly destination: string
  readonly state: string | null
  readonly opened_at_ms: number | null
  readonly retry_at_ms: number | null
  readonly held: number
}
const report = () => session.query<Report & Record<string, unknown>>('SELECT * FROM outbox_circuit_report()')

/** Settles all that is ready as held, but for the first, which is the probe of an open circuit. */
async function open(destination: string, coolDownMs: number): Promise<void> {
  const { token, rows } = await claim(session)
  const fault = `SELECT * FROM outbox_circuit_fault(CAST($4 AS uuid), $1, CAST($2 AS uuid), 0, $3, true, 'AccessDenied', 'not you')`
  await session.query(fault, [destination, rows[0]!.id, coolDownMs, token])
  await settle(session, token, null, [
    retry(rows[0]!, coolDownMs, 'free'),
    ...rows.slice(1).map((event) => hold(event, destination)),
  ])
}

test('a report has the circuits that are open, with what is aside, and those half open', async () => {
  expect(await report()).toEqual([])
  await add(session, 4)
  const before = Date.now()
  await open('queue', 60_000)
  const [circuit, ...others] = await report()
  expect(others).toEqual([])
  expect(circuit).toMatchObject({
    destination: 'queue',
    state: 'open',
    failures: 1,
    configuration: true,
    error_code: 'AccessDenied',
    error: 'not you',
    held: 3,
  })
  expect(Math.abs(circuit!.opened_at_ms! - before)).toBeLessThan(60_000)
  expect(circuit!.retry_at_ms! - circuit!.opened_at_ms!).toBeGreaterThan(59_000)
  await session.query(`UPDATE outbox_circuit SET retry_at = clock_timestamp()`)
  expect(await report()).toMatchObject([{ state: 'half-open' }])
})

test('a report has closed circuits as long as something is aside, and what is aside without any circuit', async () => {
  await add(session, 3, { key: `'${await keyOf(session, 3)}'` })
  await add(session, 3)
  const { token, rows } = await claim(session, { keyRows: 1 })
  await settle(
    session,
    token,
    null,
    rows.map((event) => hold(event, 'queue')),
  )
  await claim(session) // the followers of the key are held by it, and are nobody's to count here
  expect(await count(session, `outbox_delivery WHERE held_by = 'key'`)).toBe(2)
  expect(await report()).toMatchObject([{ destination: 'queue', state: 'closed', held: 4, opened_at_ms: null }])
  await session.query('DELETE FROM outbox_circuit')
  expect(await report()).toMatchObject([{ destination: 'queue', state: null, held: 4, failures: 0, configuration: false }])
  await session.query('UPDATE outbox_delivery SET lane = 0, held_by = NULL')
  expect(await report()).toEqual([])
})

test('the doctor sees for how long the oldest transaction is open that keeps dead rows', async () => {
  const oldestMs = () => session.one<number>('SELECT oldest_transaction_ms FROM outbox_doctor(600)')
  const other = await database.open()
  const began = performance.now()
  await other.query('BEGIN')
  await other.query('SELECT pg_current_xact_id()')
  await expect.poll(oldestMs).toBeGreaterThan(200)
  expect(performance.now() - began).toBeGreaterThan(150)
  await other.query('COMMIT')
  expect(await oldestMs()).toBeLessThan(performance.now() - began)
  await expect.poll(oldestMs).toBeLessThan(100)

  await session.query('ALTER TABLE outbox_delivery SET (autovacuum_enabled = off)')
  await add(session, 500)
  await session.query('DELETE FROM outbox_delivery')
  await session.query('SELECT pg_stat_force_next_flush()')
  await expect.poll(() => session.one<number>('SELECT dead_rows FROM outbox_doctor(600)')).toBeGreaterThanOrEqual(500)
})
