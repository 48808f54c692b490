import { beforeEach, describe, expect, test } from 'vitest'
import {
  add,
  backlog,
  claim,
  emptyOutbox,
  fail,
  hold,
  outboxDatabase,
  retry,
  settle,
  type ClaimedRow,
  type Session,
} from '../support/outbox-sql.js'

const database = await outboxDatabase('age')
const session = await database.open()
beforeEach(() => emptyOutbox(session))

const hourMs = 3_600_000
/** All events that are in the queue have been due for so many hours more. */
const grow = (by: Session, hours = 1) =>
  by.query(
    `UPDATE outbox_delivery SET due_at = due_at - $1 * interval '1 hour', failed_at = failed_at - $1 * interval '1 hour'`,
    [hours],
  )
const age = async () => (await backlog(session)).oldest_due_ms

describe('the backlog age is that of the oldest overdue event', () => {
  test.each([
    ['that backs off', (event: ClaimedRow) => retry(event, 9 * hourMs)],
    ['that is held for its destination', (event: ClaimedRow) => hold(event)],
  ])('%s, though nothing else is overdue and nothing can be claimed', async (_, outcome) => {
    await add(session, 1)
    await grow(session)
    const { token, rows } = await claim(session)
    await settle(session, token, null, [outcome(rows[0]!)])
    expect((await claim(session)).rows).toEqual([])
    expect(await age()).toBeGreaterThanOrEqual(hourMs)
    expect(await age()).toBeLessThan(2 * hourMs)
  })

  test('that is held behind one that failed; the failed one itself does not count', async () => {
    await add(session, 2, { key: `'k'` })
    const { token, rows } = await claim(session)
    await settle(session, token, null, [fail(rows[0]!)])
    await claim(session)
    await session.query(`UPDATE outbox_delivery SET due_at = due_at - interval '9 hours' WHERE lane = 3`)
    await session.query(`UPDATE outbox_delivery SET due_at = due_at - interval '1 hour' WHERE held_by = 'key'`)
    expect(await age()).toBeGreaterThanOrEqual(hourMs)
    expect(await age()).toBeLessThan(2 * hourMs)
  })

  test('and 0 if all that is overdue has failed', async () => {
    await add(session, 2)
    const { token, rows } = await claim(session)
    await settle(
      session,
      token,
      null,
      rows.map((event) => fail(event)),
    )
    await grow(session, 9)
    expect(await age()).toBeNull()
  })

  test('and is not moved by an available_at in the past', async () => {
    await add(session, 1, { columns: { available_at: `now() - interval '9 hours'` } })
    expect(await age()).toBeLessThan(hourMs)
  })
})
