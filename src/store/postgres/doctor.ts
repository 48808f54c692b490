import type { SqlCallOptions, SqlExecutor } from '../../core/ports.js'
import { boolean, integer, integerOrNull, single, text, textOrNull } from './row.js'
import { quotedSchema } from './sql-name.js'

/** What is wrong with the queue; counts of 0 and a trigger that is on are right. */
export interface QueueHealth {
  readonly triggerOn: boolean
  /** Events that have been due for so long although no relay serves their shard. */
  readonly stuck: number
  /** Leases that ran out so long ago and were never taken up. */
  readonly expiredLeases: number
  /** Rows of the queue whose event was deleted by hand. */
  readonly orphans: number
  /** For how long the oldest transaction of this database is open: vacuum removes no row that died since. */
  readonly oldestTransactionSeconds: number
  /** Of the queue, as the statistics have it. */
  readonly deadRows: number
}

/** Who the database takes the caller for. */
export interface DatabaseLogin {
  readonly user: string
  /** Those of the outbox's roles whose rights the user has. */
  readonly roles: readonly string[]
}

export interface RepairPage {
  /** Where the next page begins; null: this was the last one. */
  readonly nextAfter: string | null
  /** Events of this page that were in no state. */
  readonly stateless: number
}

/** A repair that only counts, or one that queues what it finds, with its audit row. */
export type RepairMode = 'dry-run' | { readonly actor: string; readonly reason: string; readonly request: string }

/** @param seconds what counts as long, e.g. 600 */
export async function readQueueHealth(
  executor: SqlExecutor,
  schema: string,
  seconds: number,
  options?: SqlCallOptions,
): Promise<QueueHealth> {
  const sql = `SELECT * FROM ${quotedSchema(schema)}.outbox_doctor(CAST(:seconds AS integer))`
  const row = single((await executor.execute({ sql, parameters: { seconds }, repeatable: true }, options)).rows)
  return {
    triggerOn: boolean(row, 'trigger_on'),
    stuck: integer(row, 'stuck'),
    expiredLeases: integer(row, 'expired_leases'),
    orphans: integer(row, 'orphans'),
    oldestTransactionSeconds: (integerOrNull(row, 'oldest_transaction_ms') ?? 0) / 1000,
    deadRows: integer(row, 'dead_rows'),
  }
}

/** The user in use, and what it may do here. */
export async function readLogin(executor: SqlExecutor, options?: SqlCallOptions): Promise<DatabaseLogin> {
  const sql = `SELECT CAST(current_user AS text) AS name, CAST((SELECT COALESCE(json_agg(r.rolname ORDER BY r.rolname), '[]') FROM pg_roles r
      WHERE r.rolname IN ('outbox_writer', 'outbox_relay', 'outbox_cleanup', 'outbox_monitor', 'outbox_operator')
        AND pg_has_role(current_user, r.oid, 'USAGE')) AS text) AS roles`
  const row = single((await executor.execute({ sql, repeatable: true }, options)).rows)
  return { user: text(row, 'name'), roles: JSON.parse(text(row, 'roles')) as string[] }
}

/**
 * Looks at the `scan` events after `after` (null: from the start) for such as are in no state, because they were written while the
 * trigger was disabled.
 *
 * @example
 * await repairPage(database, 'public', { after: null, scan: 1000 }, 'dry-run')
 */
export async function repairPage(
  executor: SqlExecutor,
  schema: string,
  { after, scan }: { readonly after: string | null; readonly scan: number },
  mode: RepairMode,
  options?: SqlCallOptions,
): Promise<RepairPage> {
  const isDryRun = mode === 'dry-run'
  const sql = `SELECT * FROM ${quotedSchema(schema)}.outbox_repair(CAST(:after AS uuid), CAST(:scan AS integer), CAST(:dry_run AS boolean), :actor, :reason, :request)`
  const parameters = {
    after,
    scan,
    dry_run: isDryRun,
    actor: isDryRun ? null : mode.actor,
    reason: isDryRun ? null : mode.reason,
    request: isDryRun ? null : mode.request,
  }
  const row = single((await executor.execute({ sql, parameters, repeatable: true }, options)).rows)
  return { nextAfter: textOrNull(row, 'next_after'), stateless: integer(row, 'stateless') }
}
