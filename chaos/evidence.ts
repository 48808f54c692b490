import type pg from 'pg'
import type { OperatorAction } from '../src/store/postgres/operate.js'
import type { EventAnswer } from './answers.js'
import type { Delivered } from './consumers.js'
import type { Scenario } from './scenarios.js'
import type { OperatorCall } from './schedule.js'
import type { Told } from './writers.js'

export interface CommittedEvent {
  readonly id: string
  readonly key: string | null
  /** When its transaction was committed, microseconds since 1970; its place within the transaction is `nr`. */
  readonly committedUs: number
  readonly nr: number
  /** It has no order among those of its key. */
  readonly scheduled: boolean
  /** Its route lets its key go on when it fails. */
  readonly skips: boolean
}

/** An event that was put back, aside or given up. */
export interface SettledEvent {
  readonly id: string
  readonly atMs: number
  /** 1 put back, 2 put aside, 3 failed. */
  readonly lane: number
  /** Attempts that were charged with it. */
  readonly charged: number
  /** Charged in all, this one included. */
  readonly attempts: number
  /** How often a relay crashed with it alone in flight. */
  readonly starts: number
  readonly code: string | null
  /** Put aside with the last error of before: most likely no answer was settled, and one that a relay died with may be out there. */
  readonly unsent: boolean
}

/** What an operator did while everything broke. */
export interface OperatorAct {
  readonly action: OperatorAction
  /** Events that it could have changed when it was called. */
  readonly chances: number
  /** That it changed; null: it failed. */
  readonly events: number | null
  /** Why it failed, if not as anything may while the database does. */
  readonly failure: string | null
}

/** What a gauge of the monitor said, and what the tables say. */
export interface GaugeReading {
  readonly name: string
  readonly gauge: number
  readonly least: number
  readonly most: number
}

/** A count that the functions emitted, and what the database saw of it. */
export interface CountReading {
  readonly name: string
  readonly counted: number
  readonly happened: number
}

/** All that the oracles look at: rows, answers and deliveries of one run, after it healed. */
export interface Evidence {
  readonly scenario: Scenario
  /** Of writing and faults. */
  readonly seconds: number
  readonly maxAttempts: number
  readonly retentionSeconds: number
  readonly committed: readonly CommittedEvent[]
  readonly told: Told
  readonly delivered: ReadonlyMap<string, Delivered>
  /** Effects of the inbox consumer by event. */
  readonly applied: ReadonlyMap<string, number>
  /** Events whose publication was ever recorded. */
  readonly recorded: ReadonlySet<string>
  /** Failed now. */
  readonly failed: ReadonlySet<string>
  readonly discarded: ReadonlySet<string>
  readonly released: ReadonlySet<string>
  readonly acts: readonly OperatorAct[]
  readonly settled: readonly SettledEvent[]
  readonly answers: readonly EventAnswer[]
  /** Rows that should not be there any more: by what they are. `blocking`: failed, and its key waits for an operator. */
  readonly left: Readonly<
    Record<'ready' | 'waiting' | 'held' | 'blocking' | 'leasedShards' | 'inNoState' | 'inTwoStates', number>
  >
  /** Relay processes that were killed or timed out. */
  readonly deaths: number
  readonly gauges: readonly GaugeReading[]
  readonly counts: readonly CountReading[]
  readonly faultsInjected: number
}

type FromDatabase = Pick<
  Evidence,
  'committed' | 'applied' | 'recorded' | 'failed' | 'discarded' | 'released' | 'settled' | 'left'
>

/** Reads what the database knows, once nothing changes any more. */
export async function readDatabase(query: Query): Promise<FromDatabase> {
  const committed = await query<{ id: string; key: string | null; us: string; nr: string; scheduled: boolean; skips: boolean }>(
    `SELECT event_id AS id, key, CAST(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000 AS bigint) AS us, nr, scheduled, skips
       FROM chaos.written`,
  )
  const settled = await query<{
    id: string
    ms: string
    lane: number
    charged: number
    attempts: number
    starts: number
    code: string
    unsent: boolean
  }>(
    `SELECT event_id AS id, extract(epoch FROM at) * 1000 AS ms, lane, charged, attempts, starts, code, unsent FROM chaos.settled ORDER BY nr`,
  )
  const applied = await query<{ id: string; times: number }>(
    'SELECT event_id AS id, CAST(count(*) AS integer) AS times FROM chaos.applied GROUP BY 1',
  )
  const ids = async (sql: string) => new Set((await query<{ id: string }>(sql)).map(({ id }) => id))
  const audited = (action: string) =>
    ids(`SELECT json_array_elements_text(event_ids) AS id FROM outbox_audit WHERE action = '${action}'`)
  const [left] = await query<FromDatabase['left']>(
    `SELECT (SELECT count(*) FROM outbox_delivery WHERE lane = 0)::int AS ready,
            (SELECT count(*) FROM outbox_delivery WHERE lane = 1)::int AS waiting,
            (SELECT count(*) FROM outbox_delivery WHERE lane = 2)::int AS held,
            (SELECT count(*) FROM outbox_delivery WHERE lane = 3 AND blocks_key)::int AS blocking,
            (SELECT count(*) FROM outbox_shard WHERE lease_token IS NOT NULL)::int AS "leasedShards",
            (SELECT count(*) FROM outbox o WHERE NOT EXISTS (SELECT FROM outbox_delivery d WHERE d.event_id = o.id)
                AND NOT EXISTS (SELECT FROM outbox_receipt r WHERE r.event_id = o.id))::int AS "inNoState",
            (SELECT count(*) FROM outbox_delivery JOIN outbox_receipt USING (event_id))::int AS "inTwoStates"`,
  )
  return {
    committed: committed.map(({ us, nr, ...row }) => ({ ...row, committedUs: Number(us), nr: Number(nr) })),
    settled: settled.map(({ ms, ...row }) => ({ ...row, atMs: Number(ms) })),
    applied: new Map(applied.map(({ id, times }) => [id, times])),
    recorded: await ids('SELECT DISTINCT event_id AS id FROM chaos.receipts WHERE NOT discarded'),
    failed: await ids('SELECT event_id AS id FROM outbox_delivery WHERE lane = 3'),
    discarded: await audited('discard'),
    released: await audited('release'),
    left: left!,
  }
}

/** What the database and the destinations saw of what the functions count, as far as there is a bound that holds in every run. */
export async function readCounts(
  query: Query,
  answers: readonly EventAnswer[],
  counted: (name: string) => number,
): Promise<readonly CountReading[]> {
  const [row] = await query<Record<string, number>>(
    `SELECT (SELECT count(*) FROM chaos.receipts WHERE NOT discarded)::int AS "Published",
            (SELECT count(*) FROM chaos.settled WHERE lane = 1)::int AS "Retried",
            (SELECT count(*) FROM chaos.settled WHERE lane = 3)::int AS "Failed",
            (SELECT count(*) FROM chaos.settled WHERE lane = 1 AND code IN ('NoRoute', 'UnknownDestination'))::int AS "Unrouted",
            (SELECT coalesce(sum(crashes), 0) FROM chaos.ran_out)::int AS "CrashedRelays",
            (SELECT coalesce(sum(events), 0) FROM chaos.deleted)::int AS "EventsDeleted",
            (SELECT coalesce(sum(events), 0) FROM outbox_audit WHERE actor = 'cleanup')::int AS "FailedEventsExpired"`,
  )
  const seen = { ...row!, UnknownEntries: answers.filter(({ kind }) => kind === 'missing').length }
  return Object.entries(seen).map(([name, happened]) => ({ name, counted: counted(name), happened }))
}

/** How many events an operator's act could change at this moment: none while the database is down. */
export async function readChances(query: Query, { action, destination }: Omit<OperatorCall, 'atMs'>): Promise<number> {
  const status = action === 'replay' ? 'published' : 'failed'
  const rows = await query<{ chances: number }>(
    `SELECT count(*)::int AS chances FROM outbox_status
      WHERE status = '${status}' ${destination === undefined ? '' : `AND destination = '${destination}'`}
        ${action === 'release' ? "AND detail = 'blocks its key'" : ''}`,
  ).catch(() => [])
  return rows[0]?.chances ?? 0
}

/** What the monitor's gauges must say at this moment, from the view that people read: but for its words of a suspect that waits. */
export async function readGauges(query: Query): Promise<Readonly<Record<string, number>>> {
  const [row] = await query<Record<string, number>>(
    `SELECT (SELECT count(*) FROM outbox_status WHERE status = 'pending' AND due_at <= now())::int AS "BacklogDepth",
            (SELECT coalesce(extract(epoch FROM now() - min(due_at)), 0)::float FROM outbox_status WHERE status = 'pending' AND due_at <= now()) AS "BacklogAge",
            (SELECT count(*) FROM outbox_delivery WHERE lane = 1 AND retry_at <> due_at)::int AS "BackingOffEvents",
            (SELECT count(*) FROM outbox_delivery WHERE lane = 1 AND retry_at = due_at)::int AS "ScheduledEvents",
            (SELECT count(*) FROM outbox_status WHERE detail LIKE 'held by %')::int AS "HeldEvents",
            (SELECT count(*) FROM outbox_status WHERE status = 'failed')::int AS "FailedEvents",
            (SELECT count(DISTINCT ordering_key) FROM outbox_delivery WHERE blocks_key AND coalesce(held_by, '') <> 'key')::int AS "BlockedKeys",
            (SELECT count(*) FROM outbox_shard WHERE lease_until > now())::int AS "LeasedShards",
            (SELECT count(*) FROM outbox_circuit_report() WHERE state <> 'closed')::int AS "OpenCircuits",
            (SELECT count(*) FROM outbox_circuit_report() WHERE state <> 'closed' AND configuration)::int AS "MisconfiguredDestinations"`,
  )
  return row!
}

export type Query = <Row extends pg.QueryResultRow>(sql: string) => Promise<Row[]>
