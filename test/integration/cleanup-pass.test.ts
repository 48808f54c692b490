import { beforeEach, describe, expect, it } from 'vitest'
import { cleanupPass, type CleanupPassOptions } from '../../src/core/cleanup-pass.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { measureBacklog } from '../../src/core/measure-backlog.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'
import { relayRig } from '../support/relay.js'
import { fault, perEntry, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const count = async (table: string) => (await rig.api.db.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`))[0]?.n
const age = (where: string) =>
  rig.api.db.query(
    `UPDATE outbox_receipt SET delivered_at = now() - interval '8 days' WHERE event_id IN (SELECT id FROM outbox WHERE ${where})`,
  )

async function clean(changes: Partial<CleanupPassOptions> = {}) {
  const telemetry = new RecordingTelemetry()
  const totals = await cleanupPass({
    store: rig.store,
    retentionSeconds: 7 * 86_400,
    failedRetentionSeconds: null,
    maxRows: 10,
    telemetry,
    deadline: deadlineAfter(systemClock, 30_000),
    hardDeadline: deadlineAfter(systemClock, 30_000),
    ...changes,
  })
  return { totals, telemetry }
}

/** 25 events that were published long ago, 5 just now, and one each that failed, waits and is scheduled. */
async function fill(): Promise<void> {
  const queue = new ScriptedPublisher()
  await rig.write(
    `SELECT 'Old', '{}', NULL, NULL FROM generate_series(1, 25) i UNION ALL SELECT 'New', '{}', NULL, NULL FROM generate_series(1, 5) i`,
  )
  await rig.pass({ publishers: { queue } })
  queue.script = perEntry(() => ({ kind: 'refused', fault: 'event', code: 'Malformed', reason: 'x' }))
  await rig.write(`SELECT 'Failed', '{}', NULL, NULL`)
  await rig.pass({ publishers: { queue } })
  queue.script = () => fault()
  await rig.write(`SELECT 'Waiting', '{}', NULL, NULL`)
  await rig.pass({ publishers: { queue }, passMs: 100 })
  await rig.api.db.query(
    `INSERT INTO outbox (event_type, payload, available_at) VALUES ('Scheduled', '{}', now() + interval '1 hour')`,
  )
  await age(`event_type = 'Old'`)
}

describe('cleanup', () => {
  it('deletes what was delivered before the retention, in bounded transactions, and nothing else', async () => {
    await fill()
    // however old it is
    await rig.api.db.query(
      `UPDATE outbox_delivery SET due_at = now() - interval '90 days', failed_at = failed_at - interval '90 days'`,
    )
    rig.api.requests.length = 0
    const { totals, telemetry } = await clean()
    expect(totals).toEqual({ deleted: 25, expired: 0, behind: false })
    expect(telemetry.sum('EventsDeleted')).toBe(25)
    expect(rig.api.requests.filter(({ sql }) => sql?.includes('outbox_cleanup')).length).toBe(4)
    const left = await rig.api.db.query(`SELECT event_type, count(*)::int AS n FROM outbox GROUP BY 1 ORDER BY 1`)
    expect(left).toEqual([
      { event_type: 'Failed', n: 1 },
      { event_type: 'New', n: 5 },
      { event_type: 'Scheduled', n: 1 },
      { event_type: 'Waiting', n: 1 },
    ])
    expect(await count('outbox_receipt')).toBe(5)
  })

  it('discards failed events past their own retention, with an audit row, and keeps them until then', async () => {
    await fill()
    await rig.api.db.query(`UPDATE outbox_delivery SET failed_at = now() - interval '2 days' WHERE lane = 3`)
    expect((await clean({ failedRetentionSeconds: 3 * 86_400 })).totals.expired).toBe(0)
    expect((await clean({ failedRetentionSeconds: 86_400 })).totals.expired).toBe(1)
    expect(await rig.api.db.query(`SELECT action, actor, events FROM outbox_audit`)).toEqual([
      { action: 'discard', actor: 'cleanup', events: 1 },
    ])
    expect((await rig.status(`event_type = 'Failed'`))[0]?.status).toBe('discarded')
  })

  it('stops at its deadline and says that it is behind', async () => {
    await fill()
    const { totals, telemetry } = await clean({ deadline: { remainingMs: () => 0 } })
    expect(totals).toEqual({ deleted: 0, expired: 0, behind: true })
    expect(telemetry.sum('CleanupBehind')).toBe(1)
  })

  it('shares the work with another one that runs at the same time', async () => {
    await fill()
    const both = await Promise.all([clean({ maxRows: 2 }), clean({ maxRows: 2 })])
    expect(both[0].totals.deleted + both[1].totals.deleted).toBe(25)
  })
})

describe('the backlog', () => {
  it('is emitted as 0 when nothing waits', async () => {
    const telemetry = new RecordingTelemetry()
    await measureBacklog({ store: rig.store, telemetry, deadline: deadlineAfter(systemClock, 10_000) })
    expect(telemetry.metrics.find(({ name }) => name === 'BacklogAge')?.value).toBe(0)
    expect(telemetry.metrics.find(({ name }) => name === 'BacklogDepth')?.value).toBe(0)
  })

  it('counts every event that is due and not delivered, backing off or held, by the database clock', async () => {
    const queue = new ScriptedPublisher()
    queue.script = () => ({ ...fault(), configuration: true })
    await rig.write(`SELECT 'Made', '{}', 'k', NULL FROM generate_series(1, 3) i`)
    await rig.api.db.query(`UPDATE outbox_delivery SET due_at = now() - interval '100 seconds'`)
    await rig.pass({
      publishers: { queue },
      settings: { policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } },
    })
    const telemetry = new RecordingTelemetry()
    const backlog = await measureBacklog({ store: rig.store, telemetry, deadline: deadlineAfter(systemClock, 10_000) })
    expect(backlog).toMatchObject({ depth: 3, backingOff: 1, held: 2, failed: 0, blockedKeys: 1 })
    expect(backlog.ageSeconds).toBeGreaterThan(99)
    expect(backlog.ageSeconds).toBeLessThan(130)
  })
})
