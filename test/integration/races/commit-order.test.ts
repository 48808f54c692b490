import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { seededRandom } from '../../../src/local/faults/random.js'
import { drain, emptyOutbox, outboxDatabase, outOfOrder, sqlStateOf, type Session } from '../../support/outbox-sql.js'

const seed = Number(process.env['OUTBOX_SEED'] ?? Date.now() % 1_000_000)
const writers = 8
const transactionsEach = 40
const keys = 5

const database = await outboxDatabase('commit_order')
const observer = await database.open()
const sessions = await Promise.all(Array.from({ length: writers }, () => database.open()))
// who comes later to a key's row waits for the commit of who was there before: so the numbers of a key are in commit order
await observer.query('CREATE TABLE turns (key text PRIMARY KEY, n integer NOT NULL)')
await observer.query(
  'CREATE TABLE told (event_id uuid PRIMARY KEY, key text NOT NULL, n integer NOT NULL, position integer NOT NULL)',
)
beforeEach(async () => {
  await emptyOutbox(observer)
  await observer.query('TRUNCATE turns, told')
  await observer.query(`INSERT INTO turns SELECT 'k' || i, 0 FROM generate_series(0, ${keys - 1}) i`)
})

const insert = (session: Session, key: string) =>
  session.one<string>(`INSERT INTO outbox (event_type, payload, ordering_key) VALUES ('t', '{}', $1) RETURNING id`, [key])
const insertMany = async (session: Session, key: string, count: number) => {
  const rows = await session.query<{ id: string }>(
    `INSERT INTO outbox (event_type, payload, ordering_key) SELECT 't', '{}', $1 FROM generate_series(1, $2) RETURNING id`,
    [key, count],
  )
  return rows.map(({ id }) => id)
}

/** One transaction of a service: statements of one event and of many, savepoints, waits; then it takes its keys' turns. */
async function transact(session: Session, own: readonly string[], random: () => number): Promise<'committed' | 'rolled back'> {
  const written: { readonly id: string; readonly key: string }[] = []
  await session.query('BEGIN')
  for (const key of own) {
    for (let statements = 1 + Math.floor(random() * 3); statements > 0; statements--) {
      if (random() < 0.3) {
        await session.query('SAVEPOINT s')
        await insert(session, key)
        await session.query('ROLLBACK TO s')
      }
      const ids = random() < 0.3 ? await insertMany(session, key, 3) : [await insert(session, key)]
      written.push(...ids.map((id) => ({ id, key })))
    }
  }
  // long ones among short ones
  if (random() < 0.2) await pause(40)
  for (const key of own) {
    const n = await session.one<number>('UPDATE turns SET n = n + 1 WHERE key = $1 RETURNING n', [key])
    const mine = written.filter((event) => event.key === key)
    for (const [position, { id }] of mine.entries()) {
      await session.query('INSERT INTO told VALUES ($1, $2, $3, $4)', [id, key, n, position])
    }
  }
  const end = random() < 0.15 ? 'rolled back' : 'committed'
  await session.query(end === 'committed' ? 'COMMIT' : 'ROLLBACK')
  return end
}

/** A transaction that may fail only as one that is to be tried again. */
async function attempt(session: Session, own: readonly string[], random: () => number): Promise<string> {
  const state = await sqlStateOf(transact(session, own, random))
  if (state === 'ok') return state
  await session.query('ROLLBACK')
  expect(['40P01', '55P03']).toContain(state)
  await pause(20 * random())
  return state
}

/** What was committed, in the order in which it is to be delivered. */
const told = async (key: string) =>
  (await observer.query<{ event_id: string }>('SELECT event_id FROM told WHERE key = $1 ORDER BY n, position', [key])).map(
    ({ event_id }) => event_id,
  )

describe(`plain SQL writers at once (seed ${seed}; OUTBOX_SEED replays what they do)`, () => {
  test('with transactions of one and of many statements, short and long, rolled back here and there: each key is delivered in the order of its commits', async () => {
    await Promise.all(
      sessions.map(async (session, index) => {
        const random = seededRandom(seed + index)
        for (let n = 0; n < transactionsEach; n++) {
          // in ascending order, as writers must to be spared deadlocks
          const own = Array.from({ length: keys }, (_, key) => `k${key}`).filter(() => random() < 0.4)
          // on a busy machine somebody may have waited 5 s for a key
          while ((await attempt(session, own, random)) !== 'ok');
        }
      }),
    )
    const delivered = await drain(observer)
    expect(outOfOrder(delivered)).toBe(0)
    for (let key = 0; key < keys; key++) {
      const ids = delivered.filter(({ ordering_key }) => ordering_key === `k${key}`).map(({ id }) => id)
      expect(ids.length).toBeGreaterThan(20)
      expect(ids).toEqual(await told(`k${key}`))
    }
  })

  test('who touch keys in opposite order, and repeat what fails with 40P01 or 55P03: nothing is lost, doubled or out of order', async () => {
    // 1 s by default
    for (const session of sessions) await session.query(`SET deadlock_timeout = '20ms'`)
    let deadlocks = 0
    let done = 0
    await Promise.all(
      sessions.map(async (session, index) => {
        const random = seededRandom(seed + 100 + index)
        const there = ['k0', 'k1', 'k2']
        const own = index % 2 === 0 ? there : [...there].reverse()
        for (let n = 0; n < 5; n++) {
          while ((await attempt(session, own, random)) !== 'ok') deadlocks++
          done++
        }
      }),
    )
    expect(done).toBe(5 * writers)
    expect(deadlocks).toBeGreaterThan(0)
    const delivered = await drain(observer)
    for (const key of ['k0', 'k1', 'k2']) {
      const ids = delivered.filter(({ ordering_key }) => ordering_key === key).map(({ id }) => id)
      expect(ids).toEqual(await told(key))
    }
  })
})
