import { randomUUID } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { startPostgres } from '../../../src/local/postgres/launcher.js'
import { createOutbox, createDataApiDatabase } from '../../../src/writer/index.js'
import { createRdsDataClient } from '../../../src/data-api/client.js'
import { systemClock } from '../../../src/data-api/system-clock.js'
import type { FaultRule, InjectedFault } from '../../support/data-api.js'
import { relayRig } from '../../support/relay.js'
import { ScriptedPublisher } from '../../support/scripted-publisher.js'

// a server of its own, which the tests kill
const postgres = await startPostgres()
afterAll(() => postgres.stop())
const rig = await relayRig({ postgresUrl: postgres.url() })
const { resourceArn, secretArn, database: name, clientConfig } = rig.api
await rig.api.db.query('CREATE TABLE orders (id uuid PRIMARY KEY)')
// so that what is not committed does not reach the log by itself, however slow the machine is
await rig.api.db.query(`ALTER SYSTEM SET wal_writer_delay = '10s'`)
await rig.api.db.query('ALTER SYSTEM SET autovacuum = off')
await rig.api.db.query('SELECT pg_reload_conf()')

let restarted: Promise<void> = Promise.resolve()
beforeEach(async () => {
  await restarted
  await rig.reset()
  await rig.api.db.query('TRUNCATE orders')
})

/** Kills the server, all of its processes at once; it comes back by itself, with what was committed. */
const failOver = async () => {
  await postgres.crash()
  restarted = postgres.restart()
}
const moments: readonly (readonly [moment: string, fault: InjectedFault])[] = [
  ['after it is committed, before its reply', { kind: 'drop-reply', meanwhile: failOver }],
  ['before it is executed', { kind: 'reset', meanwhile: failOver }],
]

describe.each(['outbox_claim', 'outbox_settle'])('PostgreSQL killed under a relay, at a call of %s', (match) => {
  it.each(moments)('%s: every event is published once and recorded once, in order', async (_, fault) => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', 'key-' || i % 9, NULL FROM generate_series(1, 200) i`)
    rig.api.inject({ match, fault })
    const { totals } = await rig.pass({ publishers: { queue }, passMs: 60_000 })
    expect(queue.accepted).toHaveLength(200)
    expect(queue.order.violations).toEqual([])
    expect(totals).toMatchObject({ published: 200, leaseLost: 0 })
    expect((await rig.status(`status = 'published' AND attempts = 1`)).map(({ id }) => id).sort()).toEqual(
      queue.acceptedIds().sort(),
    )
    expect(await rig.api.db.query('SELECT 1 FROM outbox_delivery')).toEqual([])
  })
})

it('PostgreSQL killed while a claim is being executed leaves nothing of it: its repeat claims', async () => {
  const queue = new ScriptedPublisher()
  await rig.write(`SELECT 'Made', '{}', 'key-' || i % 9, NULL FROM generate_series(1, 200) i`)
  const blocker = await rig.api.db.connect()
  await blocker.query('BEGIN')
  // (the look at the circuits, with which a pass begins, does not read it)
  await blocker.query('LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE')
  const pass = rig.pass({ publishers: { queue }, passMs: 60_000 })
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%outbox_claim%' AND wait_event_type = 'Lock'`
  await vi.waitFor(async () => expect(await rig.api.db.query(waiting)).toHaveLength(1), { timeout: 60_000 })
  await failOver()
  expect((await pass).totals).toMatchObject({ published: 200, leaseLost: 0 })
  expect(queue.accepted).toHaveLength(200)
  expect(queue.order.violations).toEqual([])
})

describe('PostgreSQL killed under a writer', () => {
  const outbox = createOutbox({
    database: createDataApiDatabase({ resourceArn, secretArn, database: name, client: createRdsDataClient(clientConfig) }),
  })
  const points: readonly (readonly [what: string, rule: Omit<FaultRule, 'fault'>])[] = [
    ['the begin of its transaction', { operation: 'BeginTransaction' }],
    ['a statement of its own', { match: 'INSERT INTO orders' }],
    ['the insert of its events', { match: '.outbox (id' }],
    ['its commit', { operation: 'CommitTransaction' }],
  ]
  describe.each(points)('at %s', (_, rule) => {
    it.each(moments)('%s: order and event are there once, and its relay delivers', async (__, fault) => {
      const id = randomUUID()
      rig.api.inject({ ...rule, fault })
      const ids = await outbox.transaction(async (tx) => {
        await tx.execute('INSERT INTO orders (id) VALUES (CAST(:id AS uuid))', { id })
        return tx.writeEvents([{ eventType: 'OrderCreated', orderingKey: id, payload: { id } }])
      })
      expect(await rig.api.db.query('SELECT id FROM orders')).toEqual([{ id }])
      expect(await rig.api.db.query('SELECT id FROM outbox')).toEqual(ids.map((event) => ({ id: event })))
      const queue = new ScriptedPublisher()
      await rig.pass({ publishers: { queue } })
      expect(queue.acceptedIds()).toEqual(ids)
    })
  })

  it('at its commit, which worked: what was delivered and cleaned up before the writer asks is not written again', async () => {
    let lateMs = 0
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + lateMs }
    const client = createRdsDataClient(clientConfig)
    const late = createOutbox({
      database: createDataApiDatabase({ resourceArn, secretArn, database: name, client, clock }),
    })
    const meanwhile = async () => {
      await postgres.crash()
      await postgres.restart()
      await vi.waitFor(() => rig.api.db.query('DELETE FROM outbox_delivery'), { timeout: 60_000 })
      await rig.api.db.query('DELETE FROM outbox')
      // the shortest retention
      lateMs = 60_000
    }
    rig.api.inject({ operation: 'CommitTransaction', fault: { kind: 'drop-reply', meanwhile } })
    const placed = late.transaction(async (tx) => {
      await tx.execute('INSERT INTO orders (id) VALUES (CAST(:id AS uuid))', { id: randomUUID() })
      return tx.writeEvents([{ eventType: 'OrderCreated', payload: {} }])
    })
    await expect(placed).rejects.toMatchObject({ kind: 'ambiguous' })
    expect(await rig.api.db.query('SELECT 1 AS n FROM orders')).toEqual([{ n: 1 }])
  })

  const crashes: readonly (readonly [what: string, crash: () => Promise<void>, outcome: 'tried again' | 'ambiguous'])[] = [
    [
      'and the server is started anew',
      async () => {
        await postgres.crash()
        await postgres.restart()
      },
      'tried again',
    ],
    [
      'and the server recovers by itself',
      async () => {
        const victim = await rig.api.db.connect()
        const { rows } = await victim.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
        // until all others are ended, the server works on, and writes out what must be lost
        const witness = await rig.api.db.connect()
        const ended = new Promise((resolve) => witness.once('error', resolve).once('end', resolve))
        process.kill(rows[0]!.pid, 'SIGKILL')
        await ended
        await vi.waitFor(() => rig.api.db.query('SELECT 1'), { timeout: 60_000 })
      },
      // nothing tells the two apart, so nobody says committed
      'ambiguous',
    ],
  ]
  it.each(crashes)(
    'before its commit is executed, %s, and its transaction id is given to another: it is not taken for the other',
    // the number is free again only if nothing of the transaction had reached the log
    { retry: 5 },
    async (_, crash, outcome) => {
      const id = randomUUID()
      const xid = async () =>
        Number((await rig.api.db.query<{ xid: string }>(`SELECT pg_current_xact_id()::text AS xid`))[0]?.xid)
      let own = 0
      const later: number[] = []
      const meanwhile = async () => {
        await crash()
        // nothing of the transaction had reached the log: so its number is free again
        while (later.length < 20) later.push(await xid())
      }
      rig.api.inject({ operation: 'CommitTransaction', fault: { kind: 'reset', meanwhile } })
      const placed = outbox.transaction(async (tx) => {
        await tx.execute('INSERT INTO orders (id) VALUES (CAST(:id AS uuid))', { id })
        if (own === 0) own = Number((await tx.execute('SELECT CAST(pg_current_xact_id() AS text) AS xid')).rows[0]?.['xid'])
        return tx.writeEvents([{ eventType: 'OrderCreated', payload: {} }])
      })
      const ids = await placed.catch((error: unknown) => error)
      expect(later).toContain(own)
      const [orders, events] = [
        await rig.api.db.query('SELECT id FROM orders'),
        await rig.api.db.query<{ id: string }>('SELECT id FROM outbox'),
      ]
      if (outcome === 'ambiguous') expect([ids, orders, events]).toMatchObject([{ kind: 'ambiguous' }, [], []])
      else expect([ids, orders]).toEqual([events.map((event) => event.id), [{ id }]])
    },
  )
})
