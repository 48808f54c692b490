import { afterAll, expect, it } from 'vitest'
import { startPostgres } from '../../src/local/postgres/launcher.js'
import { schemaSql } from '../../src/store/postgres/schema-sql.js'
import { add, cleanup, connect, count, drain, eventually } from '../support/outbox-sql.js'

const waves = Number(process.env['OUTBOX_VACUUM_WAVES'] ?? 3)
/** More dead rows than the 5,000 at which the queue's own settings call for a vacuum, fewer than the server's would with this backlog. */
const waveEvents = 6000
/** A fifth of them and 50, PostgreSQL's own threshold, is 8,050. */
const scheduledEvents = 40_000

// a server of its own, because how often it looks for work is a setting of the whole server
const postgres = await startPostgres()
const session = await connect(postgres.url())
afterAll(async () => {
  await session.client.end()
  await postgres.stop()
})
await session.query(`ALTER SYSTEM SET autovacuum_naptime = '1s'`)
await session.query('SELECT pg_reload_conf()')
await session.query(schemaSql({ schema: 'public' }))

const vacuums = () => session.one<number>(`SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'outbox_delivery'`)
const pages = async () => {
  const [sizes] = await session.query<{ table: number; indexes: number }>(
    `SELECT pg_relation_size('outbox_delivery') / 8192 AS table, pg_indexes_size('outbox_delivery') / 8192 AS indexes`,
  )
  return sizes!
}

it(`the queue does not grow with what goes through it: ${waves} times ${waveEvents} events beside ${scheduledEvents} that wait, with cleanup`, async () => {
  await add(session, scheduledEvents, { columns: { available_at: `now() + interval '1 day'` } })
  await session.query('VACUUM ANALYZE outbox_delivery')
  const sizes: { table: number; indexes: number }[] = []
  for (let wave = 0; wave < waves; wave++) {
    const before = await vacuums()
    for (let part = 0; part < 4; part++) {
      await add(session, waveEvents / 4, { key: `CASE WHEN i % 2 = 0 THEN 'k' || i % 300 END` })
      expect(await drain(session)).toHaveLength(waveEvents / 4)
      while ((await cleanup(session)) > 0);
    }
    await session.query('SELECT pg_stat_force_next_flush()')
    await eventually(async () => (await vacuums()) > before, 20_000)
    sizes.push(await pages())
  }
  console.log(JSON.stringify(sizes))
  const [first, last] = [sizes[0]!, sizes.at(-1)!]
  expect(last.table).toBeLessThan(first.table * 1.2)
  expect(last.indexes).toBeLessThan(first.indexes * 1.2)
  expect(await count(session, 'outbox')).toBe(scheduledEvents)
  expect(await count(session, 'outbox_receipt')).toBe(0)
}, 110_000)
