import type { SqlCallOptions, SqlExecutor } from '../../core/ports.js'
import { integer, single, text, textOrNull } from './row.js'
import { quotedSchema } from './sql-name.js'

/** What an operator does to failed events; `replay` is for published ones. */
export type OperatorAction = 'redrive' | 'discard' | 'release' | 'replay'

/** An event is taken if it matches every part that is given. */
export interface ActFilter {
  readonly ids?: readonly string[] | undefined
  readonly eventType?: string | undefined
  readonly orderingKey?: string | undefined
  readonly destination?: string | undefined
  /** Of failed events alone. */
  readonly errorCode?: string | undefined
  /** When it failed, or was published: from this moment on, and before that one; milliseconds since 1970. */
  readonly fromMs?: number | undefined
  readonly untilMs?: number | undefined
  /** For a replay: events with an ordering key alone, or those without one. */
  readonly keyed?: boolean | undefined
}

/** What an act would take. */
export interface ActPreview {
  readonly events: number
  /** Of them, those with an ordering key. */
  readonly keyed: number
  /** Ids of the first ten. */
  readonly sample: readonly string[]
}

export interface Act {
  readonly action: OperatorAction
  readonly filter: ActFilter
  /** The oldest so many. */
  readonly maxRows: number
  readonly actor: string
  readonly reason: string
  /** UUID, new for every act: a call whose reply was lost is repeated under it, and is done once. */
  readonly request: string
}

/** An ordering key that waits for an operator. */
export interface BlockedKey {
  readonly orderingKey: string
  /** The failed event that blocks it. */
  readonly eventId: string
  readonly eventType: string
  readonly failedAtMs: number
  readonly lastErrorCode: string | null
  readonly lastError: string | null
  /** Pending events of the key. */
  readonly waiting: number
}

/**
 * What an act with this filter would take, at most `maxRows`. Changes nothing.
 *
 * @example
 * await previewAct(database, 'public', 'redrive', { errorCode: 'AccessDenied' }, 1000)
 */
export async function previewAct(
  executor: SqlExecutor,
  schema: string,
  action: OperatorAction,
  filter: ActFilter,
  maxRows: number,
  options?: SqlCallOptions,
): Promise<ActPreview> {
  const sql = `SELECT count(*) AS events, count(n.ordering_key) AS keyed,
      CAST(COALESCE(json_agg(n.event_id) FILTER (WHERE n.nth <= 10), '[]') AS text) AS sample
    FROM (SELECT c.event_id, c.ordering_key, row_number() OVER () AS nth
            FROM ${quotedSchema(schema)}.outbox_choose(:action, :filter, CAST(:max_rows AS integer)) c) n`
  const parameters = { action, filter: JSON.stringify(filter), max_rows: maxRows }
  const row = single((await executor.execute({ sql, parameters, repeatable: true }, options)).rows)
  return { events: integer(row, 'events'), keyed: integer(row, 'keyed'), sample: JSON.parse(text(row, 'sample')) as string[] }
}

/**
 * Carries out one batch, with its audit row in the same transaction; answers how many events it changed. Repeat it, each time
 * with a new `request`, until it answers 0.
 *
 * @throws SqlError of kind `ambiguous` if the reply was lost until the deadline: `outbox_audit` has a row with this request if it
 * was carried out.
 * @example
 * await carryOut(database, 'public', { action: 'redrive', filter: {}, maxRows: 100, actor, reason: 'fixed', request: randomUUID() })
 */
export async function carryOut(
  executor: SqlExecutor,
  schema: string,
  { action, filter, maxRows, actor, reason, request }: Act,
  options?: SqlCallOptions,
): Promise<number> {
  const outbox = quotedSchema(schema)
  const isReplay = action === 'replay'
  const sql = isReplay
    ? `SELECT ${outbox}.outbox_replay(:filter, CAST(:max_rows AS integer), false, :actor, :reason) AS events`
    : `SELECT ${outbox}.outbox_operate(:action, :filter, CAST(:max_rows AS integer), false, :actor, :reason) AS events`
  const parameters = {
    ...(isReplay ? {} : { action }),
    filter: JSON.stringify({ ...filter, request }),
    max_rows: maxRows,
    actor,
    reason,
  }
  return integer(single((await executor.execute({ sql, parameters, repeatable: true }, options)).rows), 'events')
}

/**
 * Keys that a failed event blocks, the longest blocked first.
 *
 * @param limit 1 to 1,000
 * @example
 * await listBlockedKeys(database, 'public', { limit: 20 })
 */
export async function listBlockedKeys(
  executor: SqlExecutor,
  schema: string,
  { orderingKey, limit }: { readonly orderingKey?: string | undefined; readonly limit: number },
  options?: SqlCallOptions,
): Promise<readonly BlockedKey[]> {
  const view = `${quotedSchema(schema)}.outbox_status`
  const sql = `WITH blocked AS (
      SELECT s.* FROM ${view} s WHERE s.failed_at IS NOT NULL AND s.detail = 'blocks its key'
         AND (CAST(:key AS text) IS NULL OR s.ordering_key = :key)
       ORDER BY s.failed_at, s.id LIMIT CAST(:limit AS integer))
    SELECT b.ordering_key, CAST(b.id AS text) AS id, b.event_type, CAST(extract(epoch FROM b.failed_at) * 1000 AS bigint) AS failed_at_ms,
           b.last_error_code, b.last_error, COALESCE(w.waiting, 0) AS waiting
      FROM blocked b LEFT JOIN (
        SELECT s.ordering_key, count(*) AS waiting FROM ${view} s
         WHERE s.due_at IS NOT NULL AND s.failed_at IS NULL AND s.ordering_key IN (SELECT ordering_key FROM blocked)
         GROUP BY s.ordering_key) w ON w.ordering_key = b.ordering_key
     ORDER BY b.failed_at, b.id`
  const parameters = { key: orderingKey ?? null, limit }
  const { rows } = await executor.execute({ sql, parameters, repeatable: true }, options)
  return rows.map((row) => ({
    orderingKey: text(row, 'ordering_key'),
    eventId: text(row, 'id'),
    eventType: text(row, 'event_type'),
    failedAtMs: integer(row, 'failed_at_ms'),
    lastErrorCode: textOrNull(row, 'last_error_code'),
    lastError: textOrNull(row, 'last_error'),
    waiting: integer(row, 'waiting'),
  }))
}
