import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  claim,
  cleanup,
  count,
  emptyOutbox,
  eventually,
  expireFailed,
  fail,
  operate,
  outboxDatabase,
  published,
  retry,
  settle,
  soundState,
  stateOf,
  type ClaimedRow,
  type Session,
} from '../support/outbox-sql.js'

const events = Number(process.env['OUTBOX_CLEANUP_EVENTS'] ?? 4000)
const writers = 3
const cleanupRows = 40
const retentionSeconds = 1

const database = await outboxDatabase('cleanup_live')
const session = await database.open()
// what is deleted is written down at the moment when it is deleted
await database.query(
  `CREATE TABLE seen_deleted (id uuid PRIMARY KEY, transaction xid8, queued boolean, kept_seconds double precision)`,
)
await database.query(`CREATE FUNCTION see_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen_deleted SELECT OLD.id, pg_current_xact_id(), EXISTS (SELECT FROM outbox_delivery WHERE event_id = OLD.id),
      extract(epoch FROM clock_timestamp() - (SELECT delivered_at FROM outbox_receipt WHERE event_id = OLD.id));
    RETURN OLD;
  END $$`)
await database.query('CREATE TRIGGER see_deleted BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION see_deleted()')

beforeEach(async () => {
  await emptyOutbox(session)
  await database.query('TRUNCATE seen_deleted')
})

describe('cleanup beside writers, relays and operators', () => {
  it(`deletes of ${events} events what was delivered or discarded ${retentionSeconds} s ago, in bounded transactions, and nothing else`, async () => {
    const run = { delivering: true }
    const failed = new Set<string>()
    const committed = new Set<string>()
    const sent = new Set<string>()
    const while_ = async (goesOn: () => boolean, step: (own: Session) => Promise<unknown>) => {
      const own = await database.open()
      while (goesOn()) {
        await step(own)
        await pause(2)
      }
    }
    const writing = Promise.all(
      Array.from({ length: writers }, async () => {
        const own = await database.open()
        for (let left = Math.ceil(events / writers); left > 0; left -= 20) for (const id of await write(own)) committed.add(id)
      }),
    )
    const others = [
      ...[1, 2, 3].map(() =>
        while_(
          () => run.delivering,
          (own) => deliver(own, sent, failed),
        ),
      ),
      ...[1, 2].map(() =>
        while_(
          () => run.delivering,
          (own) => cleanup(own, retentionSeconds, cleanupRows),
        ),
      ),
      while_(
        () => run.delivering,
        (own) => expireFailed(own, retentionSeconds, 10),
      ),
      ...(['redrive', 'release', 'discard'] as const).map((action) =>
        while_(
          () => run.delivering,
          async (own) => {
            await operate(own, action, { eventType: `operator-${action}` }, { rows: 5 })
            await pause(20)
          },
        ),
      ),
    ]
    try {
      await writing
      await eventually(
        () =>
          database
            .query('SELECT 1 WHERE NOT EXISTS (SELECT FROM outbox_delivery WHERE due_at <= now())')
            .then(({ length }) => length),
        60_000,
      )
      // all but what is scheduled for the next day is delivered or discarded, and must be gone when its time is over
      await eventually(async () => (await count(session, 'outbox_receipt')) === 0, 20_000)
    } finally {
      run.delivering = false
      await Promise.all(others)
    }

    const [seen] = await session.query(
      `SELECT count(*) AS deleted, count(*) FILTER (WHERE queued OR kept_seconds IS NULL) AS undelivered, min(kept_seconds) >= $1 AS kept,
              (SELECT max(n) FROM (SELECT count(*) AS n FROM seen_deleted GROUP BY transaction) t) AS most
         FROM seen_deleted`,
      [retentionSeconds],
    )
    expect(seen).toMatchObject({ undelivered: 0, kept: true })
    expect(seen!['most']).toBeLessThanOrEqual(cleanupRows)
    const scheduled = await session.query<{ id: string }>('SELECT event_id AS id FROM outbox_delivery')
    expect(scheduled.length).toBeGreaterThan(0)
    expect(seen!['deleted']).toBe(committed.size - scheduled.length)
    expect(await stateOf(session)).toEqual(soundState)

    // each event was sent, or discarded by whoever is named in an audit row
    const audits = await session.query<{ actor: string; action: string; id: string }>(
      'SELECT actor, action, json_array_elements_text(event_ids) AS id FROM outbox_audit',
    )
    const discarded = audits.filter(({ action }) => action === 'discard')
    expect(new Set(discarded.map(({ id }) => id)).size).toBe(discarded.length)
    const accounted = new Set([...sent, ...discarded.map(({ id }) => id), ...scheduled.map(({ id }) => id)])
    expect([...committed].filter((id) => !accounted.has(id))).toEqual([])
    expect(discarded.filter(({ id }) => sent.has(id))).toEqual([])
    for (const [actor, action] of [
      ['cleanup', 'discard'],
      ['ann', 'discard'],
      ['ann', 'redrive'],
      ['ann', 'release'],
    ] as const) {
      expect([actor, action, audits.some((one) => one.actor === actor && one.action === action)]).toEqual([actor, action, true])
    }
    expect(await session.one<number>('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')).toBe(0)
  })

  it('keeps failed events for ever unless they have a retention, however old they and their payloads are', async () => {
    await session.query(
      `INSERT INTO outbox (event_type, payload, ordering_key) SELECT 't', '{}', 'k' || i FROM generate_series(1, 30) i`,
    )
    const { token, rows } = await claim(session)
    await settle(
      session,
      token,
      null,
      rows.map((row) => fail(row)),
    )
    await session.query(
      `UPDATE outbox_delivery SET failed_at = failed_at - interval '900 days', due_at = due_at - interval '900 days'`,
    )
    expect(await cleanup(session, 0)).toBe(0)
    expect(await count(session, 'outbox')).toBe(30)
    // bounded: three transactions and the one that finds nothing
    const expired: number[] = []
    do expired.push(await expireFailed(session, 86_400 * 365, 12))
    while (expired.at(-1)! > 0)
    expect(expired).toEqual([12, 12, 6, 0])
    expect(await session.query('SELECT events FROM outbox_audit ORDER BY id')).toEqual([
      { events: 12 },
      { events: 12 },
      { events: 6 },
    ])
  })
})

/** 20 events in one transaction: some of keys, some for tomorrow, some that will fail and be dealt with by an operator or by time. */
async function write(own: Session): Promise<string[]> {
  const rows = await own.query<{ id: string }>(
    `INSERT INTO outbox (event_type, payload, ordering_key, available_at)
     SELECT (ARRAY['good', 'good', 'good', 'good', 'good', 'good', 'good', 'operator-redrive', 'operator-discard', 'operator-release', 'expires'])[1 + floor(random() * 11)],
            '{"i":1}', CASE WHEN random() < 0.5 THEN 'k' || floor(random() * 200) END, CASE WHEN random() < 0.01 THEN now() + interval '1 day' END
       FROM generate_series(1, 20) RETURNING CAST(id AS text) AS id`,
  )
  return rows.map(({ id }) => id)
}

/** Fails what is to fail, puts some off, publishes the rest. A redriven event is published. */
async function deliver(own: Session, sent: Set<string>, failed: Set<string>): Promise<void> {
  const { token, rows } = await claim(own, { rows: 100, shards: 6 })
  if (rows.length === 0) return
  const done = new Set<string>()
  const [good, bad]: [ClaimedRow[], ClaimedRow[]] = [[], []]
  for (const row of rows) {
    // behind an event that is not published, those of its key are left
    if (row.ordering_key !== null && done.has(row.ordering_key)) continue
    if (isToFail(row, failed)) {
      bad.push(row)
      if (row.ordering_key !== null) done.add(row.ordering_key)
    } else good.push(row)
  }
  for (const { id } of good) sent.add(id)
  for (const { id, attempts } of bad) if (attempts > 0) failed.add(id)
  await settle(
    own,
    token,
    published(good),
    bad.map((row) => (row.attempts === 0 ? retry(row) : fail(row))),
  )
}

/** One in ten of the good ones is put off once. An event that was redriven after its failure is published. */
function isToFail({ id, event_type: type, seq, attempts }: ClaimedRow, failed: Set<string>): boolean {
  return type === 'good' ? attempts === 0 && seq % 10 === 0 : !failed.has(id)
}
