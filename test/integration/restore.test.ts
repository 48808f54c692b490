import { afterAll, expect, test } from 'vitest'
import { schemaSql } from '../../src/store/postgres/schema-sql.js'
import { startPostgres } from '../../src/local/postgres/launcher.js'
import {
  add,
  claim,
  connect,
  count,
  drain,
  eventually,
  fail,
  hold,
  outboxDatabase,
  outOfOrder,
  published,
  retry,
  settle,
  soundState,
  stateOf,
  type Session,
} from '../support/outbox-sql.js'

// What a dump and its restore, a copy of the cluster or a promoted replica leave: the same rows in a server whose transaction
// ids, log positions and sessions are others.

const source = await (await outboxDatabase('restore')).open()
const server = await startPostgres()
const copy = await connect(server.url())
afterAll(async () => {
  await copy.client.end()
  await server.stop()
})

/** As pg_restore does: rows without triggers, then the sequence. */
async function restore(from: Session, to: Session): Promise<void> {
  await to.query(schemaSql({ schema: 'public' }))
  await to.query('SET session_replication_role = replica')
  const tables = `SELECT tablename AS "table" FROM pg_tables
                   WHERE schemaname = 'public' AND tablename NOT IN ('outbox_meta', 'outbox_migration', 'outbox_inbox')`
  for (const { table } of await from.query<{ table: string }>(tables)) {
    const rows = await from.one<string | null>(`SELECT CAST(json_agg(t) AS text) FROM ${table} t`)
    await to.query(`DELETE FROM ${table}`)
    const sql = `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(CAST(NULL AS ${table}), CAST($1 AS json))`
    if (rows !== null) await to.query(sql, [rows])
  }
  await to.query(`SELECT setval('outbox_delivery_seq', $1)`, [await from.one('SELECT last_value FROM outbox_delivery_seq')])
  await to.query('SET session_replication_role = origin')
}

test('what waited is delivered by the copy, in order, and new events behind it, though its transaction ids begin anew', async () => {
  for (let transactions = 0; transactions < 2_000; transactions += 1) await source.query('SELECT pg_current_xact_id()')
  await add(source, 200, { key: `'k' || i % 20` })
  const delivered = await claim(source, { rows: 40 })
  await settle(source, delivered.token, published(delivered.rows))
  const held = await claim(source, { keyRows: 1 })
  const [a, b, c] = held.rows
  await settle(source, held.token, null, [retry(a!), hold(b!), fail(c!)])
  const inFlight = await claim(source, { leaseSeconds: 2 })
  expect(inFlight.rows.length).toBeGreaterThan(0)

  await restore(source, copy)
  const transactionId = 'SELECT CAST(pg_current_xact_id() AS text)'
  expect(Number(await copy.one(transactionId))).toBeLessThan(Number(await source.one(transactionId)))
  await add(copy, 100, { key: `'k' || i % 20`, from: 201 })

  // the lease of a relay that knows nothing of the copy runs out there too
  const rows = [...delivered.rows]
  await eventually(async () => {
    rows.push(...(await drain(copy, { suspectLeaseSeconds: 10 })))
    return (await count(copy, 'outbox_shard WHERE lease_token IS NOT NULL')) === 0
  }, 60_000)
  await copy.query(`SELECT outbox_operate('redrive', '{}', 10, false, 'ann', 'test')`)
  await eventually(async () => {
    await copy.query(`SELECT outbox_circuits('{"D": 100}', 1000)`)
    return (await count(copy, `outbox_delivery WHERE held_by LIKE 'destination:%'`)) === 0
  }, 60_000)
  await eventually(async () => {
    rows.push(...(await drain(copy)))
    return (await count(copy, 'outbox_delivery')) === 0
  }, 60_000)
  expect(rows).toHaveLength(300)
  expect(outOfOrder(rows)).toBe(0)
  expect(await stateOf(copy)).toEqual(soundState)
})

test('no column holds what only this server understands', async () => {
  expect(
    await source.query(
      `SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'public' AND udt_name IN ('xid', 'xid8', 'pg_lsn', 'pg_snapshot', 'txid_snapshot', 'oid', 'tid', 'cid')`,
    ),
  ).toEqual([])
})
