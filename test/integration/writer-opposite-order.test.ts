import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createOutbox, SqlError, type NewEvent, type Outbox } from '../../src/writer/index.js'
import { startServiceDatabase, type ServiceDatabase } from '../support/outbox-data-api.js'

let service: ServiceDatabase
let outbox: Outbox
beforeAll(async () => {
  service = await startServiceDatabase()
  outbox = createOutbox({ database: service.database })
})
afterEach(async () => {
  await service.server.db.query('TRUNCATE outbox, outbox_delivery, orders')
  service.server.requests.length = 0
})

const event = (orderingKey: string, eventType: string): NewEvent => ({ eventType, orderingKey, payload: {} })
const begun = () => service.server.requests.filter(({ operation }) => operation === 'BeginTransaction').length
const written = async () =>
  (await service.server.db.query<{ event_type: string }>('SELECT event_type FROM outbox ORDER BY event_type')).map(
    ({ event_type }) => event_type,
  )
/** Resolves for each caller once both are there. */
function meetingPoint() {
  let arrived = 0
  let meet = (): void => undefined
  const met = new Promise<void>((resolve) => (meet = resolve))
  return () => {
    if (++arrived === 2) meet()
    return met
  }
}

describe('Two writers that touch two ordering keys in opposite order', () => {
  test('in transactions of their own: one is told that it may try again and leaves nothing, the other commits; repeated, it is there', async () => {
    const meet = meetingPoint()
    const write = async (name: string, first: string, second: string, together: () => Promise<void>) => {
      const tx = await service.database.begin()
      try {
        await outbox.writeEvents(tx, [event(first, `${name}1`)])
        await together()
        await outbox.writeEvents(tx, [event(second, `${name}2`)])
        await tx.commit()
      } catch (error) {
        await tx.rollback()
        throw error
      }
    }
    const ends = await Promise.allSettled([write('A', 'x', 'y', meet), write('B', 'y', 'x', meet)])
    const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
    expect(errors).toHaveLength(1)
    expect(errors[0]).toBeInstanceOf(SqlError)
    expect(errors[0]).toMatchObject({ code: 'Sql', kind: 'rolled-back', sqlState: '40P01' })
    const loser = ends[0].status === 'rejected' ? 'A' : 'B'
    expect(await written()).toEqual(loser === 'A' ? ['B1', 'B2'] : ['A1', 'A2'])

    const [first, second] = loser === 'A' ? (['x', 'y'] as const) : (['y', 'x'] as const)
    await write(loser, first, second, () => Promise.resolve())
    expect(await written()).toEqual(['A1', 'A2', 'B1', 'B2'])
  })

  test('in transaction(): they never deadlock, because all events are one statement', async () => {
    for (let round = 0; round < 20; round++) {
      const meet = meetingPoint()
      const write = (first: string, second: string) =>
        outbox.transaction(async (tx) => {
          await tx.writeEvents([event(first, 'T')])
          await meet()
          await tx.writeEvents([event(second, 'T')])
        })
      await Promise.all([write('x', 'y'), write('y', 'x')])
    }
    expect(begun()).toBe(40)
    expect(await written()).toHaveLength(80)
  })

  test('in transaction(), with idempotency keys, which are written at once: the one that deadlocks is tried again, whole', async () => {
    const meet = meetingPoint()
    const write = (name: string, first: string, second: string) =>
      outbox.transaction(async (tx) => {
        await tx.writeEvents([{ ...event(first, `${name}1`), idempotencyKey: `${name}1` }])
        await meet()
        await tx.writeEvents([{ ...event(second, `${name}2`), idempotencyKey: `${name}2` }])
      })
    await Promise.all([write('A', 'x', 'y'), write('B', 'y', 'x')])
    expect(begun()).toBe(3)
    expect(await written()).toEqual(['A1', 'A2', 'B1', 'B2'])
  })
})
