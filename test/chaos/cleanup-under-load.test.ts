import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { eventually } from '../support/outbox-sql.js'
import { readQueue } from '../support/queue-reader.js'

const events = Number(process.env['OUTBOX_CHAOS_EVENTS'] ?? 2000)
const seed = Number(process.env['OUTBOX_SEED'] ?? Date.now() % 1_000_000)
const cleanupRows = 100
const scheduled = 20

describe(`cleanup as a process beside relays (seed ${seed}; OUTBOX_SEED replays the faults)`, () => {
  let stack: LocalStack
  let directory: string
  let db: pg.Pool
  const lines: string[] = []
  const rows = async <Row extends pg.QueryResultRow>(sql: string) => (await db.query<Row>(sql)).rows

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outbox-cleanup-test-'))
    const configFile = join(directory, 'outbox.json')
    // the shortest retentions: a minute, and an hour of failed events; `operate` lets time go by
    await writeFile(
      configFile,
      JSON.stringify({ retentionSeconds: 60, failedRetentionSeconds: 3600, cleanupRows, retryBaseMs: 50 }),
    )
    stack = await startLocalStack({ port: 0, relays: 3, configFile, periods: { cleanup: 1 }, log: (line) => lines.push(line) })
    db = new pg.Pool({ connectionString: stack.description.databaseUrl, max: 4 })
  }, 120_000)
  afterAll(async () => {
    await db.end()
    await stack.stop()
    await rm(directory, { recursive: true, force: true })
  })

  it(`of ${events} events each is received, or discarded with an audit row, and then deleted; what is scheduled stays`, async () => {
    stack.faults.set({
      seed,
      rules: [
        { service: 'sqs', rate: 0.03, fault: { kind: 'entry-error', code: 'InvalidMessageContents', senderFault: true } },
        { service: 'sqs', rate: 0.03, fault: { kind: 'entry-error', code: 'InternalError' } },
        { service: 'sqs', operation: 'SendMessageBatch', rate: 0.02, fault: { kind: 'drop-reply' } },
        ...['outbox_cleanup', 'outbox_expire_failed', 'outbox_settle'].map((match) => ({
          service: 'rds-data' as const,
          match,
          rate: 0.1,
          fault: { kind: 'drop-reply' as const },
        })),
      ],
    })
    const run: { operating: boolean; wanted?: readonly string[] } = { operating: true }
    const { endpoint, queues } = stack.description
    const reading = readQueue(
      endpoint,
      queues.queue!,
      (deliveries) => {
        if (run.wanted === undefined) return false
        const ids = new Set(deliveries.map(({ eventId }) => eventId))
        return run.wanted.every((id) => ids.has(id))
      },
      240_000,
    )
    const operating = operate(run)
    const committed = await write()
    await eventually(
      async () => (await rows('SELECT FROM outbox_delivery WHERE due_at <= now() LIMIT 1')).length === 0,
      120_000,
    ).finally(() => (run.operating = false))
    await operating

    const audits = await rows<{ actor: string; action: string; id: string }>(
      'SELECT actor, action, json_array_elements_text(event_ids) AS id FROM outbox_audit',
    )
    const discarded = new Set(audits.filter(({ action }) => action === 'discard').map(({ id }) => id))
    run.wanted = [...committed].filter((id) => !discarded.has(id))
    const received = new Set((await reading).map(({ eventId }) => eventId))
    expect([...received].filter((id) => !committed.has(id))).toEqual([])

    // nothing but what is scheduled is left, once the last cleanup has run
    await letTimeGoBy()
    await eventually(async () => (await rows('SELECT FROM outbox_receipt LIMIT 1')).length === 0, 30_000)
    expect(await rows(`SELECT event_type, count(*)::int AS events FROM outbox GROUP BY 1`)).toEqual([
      { event_type: 'Scheduled', events: scheduled },
    ])
    expect(await rows('SELECT count(*)::int AS events FROM outbox_delivery')).toEqual([{ events: scheduled }])

    expect(audits.filter(({ actor, action }) => actor === 'cleanup' && action === 'discard').length).toBeGreaterThan(0)
    expect(audits.filter(({ actor, action }) => actor === 'ann' && action === 'redrive').length).toBeGreaterThan(0)
    expect(await rows(`SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()`)).toEqual([
      { deadlocks: 0 },
    ])
    expect(lines.filter((line) => /EventRowMissing|deadlock|40P01|database-error/.test(line))).toEqual([])
    const cleanups = lines.filter((line) => line.startsWith('cleanup ') && line.includes('cleanup-completed'))
    expect(cleanups.length).toBeGreaterThan(2)
    const hits = stack.faults.get().rules.map((rule) => rule.hits)
    console.log(`${cleanups.length} cleanups, ${discarded.size} discarded, ${received.size} received, faults ${hits.join('/')}`)
  })

  /** Transactions of 20 events, a third of them of 50 keys; answers the ids of what must be delivered. */
  async function write(): Promise<Set<string>> {
    const committed = new Set<string>()
    await db.query(
      `INSERT INTO outbox (event_type, payload, destination, available_at)
       SELECT 'Scheduled', '{}', 'queue', now() + interval '1 day' FROM generate_series(1, ${scheduled})`,
    )
    while (committed.size < events) {
      const inserted = await rows<{ id: string }>(
        `INSERT INTO outbox (event_type, payload, destination, ordering_key)
         SELECT 'Moved', '{"n":1}', 'queue', CASE WHEN i % 3 = 0 THEN 'key-' || floor(random() * 50) END FROM generate_series(1, 20) i RETURNING id`,
      )
      for (const { id } of inserted) committed.add(id)
      await pause(20)
    }
    return committed
  }

  /** Redrives half of what failed; of the rest it has two hours gone by, so that the retention of failed events is over. */
  async function operate(run: { readonly operating: boolean }): Promise<void> {
    while (run.operating) {
      const failed = await rows<{ id: string }>(
        "SELECT event_id AS id FROM outbox_delivery WHERE failed_at > now() - interval '1 hour' LIMIT 20",
      )
      const half = JSON.stringify({ ids: failed.slice(0, failed.length / 2).map(({ id }) => id) })
      await db.query(`SELECT outbox_operate('redrive', $1, 100, false, 'ann', 'test')`, [half])
      await db.query(
        `UPDATE outbox_delivery SET failed_at = failed_at - interval '2 hours' WHERE event_id = ANY ($1) AND failed_at IS NOT NULL`,
        [failed.slice(failed.length / 2).map(({ id }) => id)],
      )
      await letTimeGoBy()
      await pause(50)
    }
  }

  /** What is delivered was delivered two minutes ago. */
  async function letTimeGoBy(): Promise<void> {
    await db.query(
      `UPDATE outbox_receipt SET delivered_at = delivered_at - interval '2 minutes' WHERE event_id IN
         (SELECT event_id FROM outbox_receipt WHERE delivered_at > now() - interval '1 minute' FOR UPDATE SKIP LOCKED)`,
    )
  }
})
