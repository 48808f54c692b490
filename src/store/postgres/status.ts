import type { SqlCallOptions, SqlExecutor, SqlParameter, SqlRow } from '../../core/ports.js'
import { integer, integerOrNull, text, textOrNull } from './row.js'
import { quotedSchema } from './sql-name.js'

export type EventStatus = 'pending' | 'published' | 'failed' | 'discarded' | 'unknown'

/** One event as the view `outbox_status` shows it. The payload is read apart: `OutboxStore.readPayload`. */
export interface EventStatusRow {
  readonly id: string
  readonly eventType: string
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly orderingKey: string | null
  /** Where it went last; before its first attempt the row's own choice. */
  readonly destination: string | null
  readonly status: EventStatus
  /** E.g. `ready`, `scheduled`, `backing off`, `held by key`, `blocks its key`; null if there is nothing to add. */
  readonly detail: string | null
  readonly attempts: number
  readonly replays: number
  readonly createdAtMs: number
  readonly dueAtMs: number | null
  readonly retryAtMs: number | null
  readonly failedAtMs: number | null
  readonly deliveredAtMs: number | null
  readonly brokerMessageId: string | null
  readonly lastErrorCode: string | null
  readonly lastError: string | null
  /** A JSON object, verbatim. */
  readonly headers: string | null
  readonly payloadBytes: number
  readonly shard: number | null
  readonly seq: bigint | null
}

export interface EventFilter {
  readonly status?: EventStatus | undefined
  readonly eventType?: string | undefined
  readonly destination?: string | undefined
  readonly orderingKey?: string | undefined
  /** 1 to 1,000; the newest events come first. */
  readonly limit: number
}

export interface TableSize {
  readonly table: string
  /** As the statistics have it; null if there are none yet. */
  readonly estimatedRows: number | null
  readonly tableBytes: number
  readonly indexBytes: number
}

/** Conditions that the side tables' own indexes can answer, in place of one on the computed status. */
const statusConditions: Readonly<Record<EventStatus, string>> = {
  pending: 's.due_at IS NOT NULL AND s.failed_at IS NULL',
  failed: 's.failed_at IS NOT NULL',
  published: "s.delivered_at IS NOT NULL AND s.status = 'published'",
  discarded: "s.delivered_at IS NOT NULL AND s.status = 'discarded'",
  unknown: "s.status = 'unknown'",
}

/**
 * Events that match all of the filter, newest first.
 *
 * @example
 * await listEvents(database, 'public', { status: 'failed', eventType: 'OrderCreated', limit: 20 })
 */
export async function listEvents(
  executor: SqlExecutor,
  schema: string,
  filter: EventFilter,
  options?: SqlCallOptions,
): Promise<readonly EventStatusRow[]> {
  const conditions = filter.status === undefined ? [] : [statusConditions[filter.status]]
  const parameters: Record<string, SqlParameter> = { limit: filter.limit }
  for (const [column, value] of [
    ['event_type', filter.eventType],
    ['destination', filter.destination],
    ['ordering_key', filter.orderingKey],
  ] as const) {
    if (value === undefined) continue
    conditions.push(`s.${column} = :${column}`)
    parameters[column] = value
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return select(executor, schema, `${where} ORDER BY s.id DESC LIMIT CAST(:limit AS integer)`, parameters, options)
}

/** One event; null if the outbox does not have it, or not any more. */
export async function showEvent(
  executor: SqlExecutor,
  schema: string,
  id: string,
  options?: SqlCallOptions,
): Promise<EventStatusRow | null> {
  const [event] = await select(executor, schema, 'WHERE s.id = CAST(:id AS uuid)', { id }, options)
  return event ?? null
}

/** How large the outbox's tables are. */
export async function readTableSizes(
  executor: SqlExecutor,
  schema: string,
  options?: SqlCallOptions,
): Promise<readonly TableSize[]> {
  const sql = `SELECT CAST(c.relname AS text) AS name, CAST(c.reltuples AS bigint) AS estimated_rows,
      pg_table_size(c.oid) AS table_bytes, pg_indexes_size(c.oid) AS index_bytes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :schema AND c.relname IN ('outbox', 'outbox_delivery', 'outbox_receipt', 'outbox_audit') AND c.relkind = 'r'
    ORDER BY c.relname`
  const { rows } = await executor.execute({ sql, parameters: { schema }, repeatable: true }, options)
  return rows.map((row) => {
    const estimate = integer(row, 'estimated_rows') // -1: never analysed
    return {
      table: text(row, 'name'),
      estimatedRows: estimate < 0 ? null : estimate,
      tableBytes: integer(row, 'table_bytes'),
      indexBytes: integer(row, 'index_bytes'),
    }
  })
}

const milliseconds = (column: string) => `CAST(extract(epoch FROM s.${column}) * 1000 AS bigint) AS ${column}_ms`

/** An `available_at` of infinity is no number of milliseconds: it is shown as no time at all. */
const millisecondsOrNull = (column: string) =>
  `CASE WHEN isfinite(s.${column}) THEN CAST(extract(epoch FROM s.${column}) * 1000 AS bigint) END AS ${column}_ms`

async function select(
  executor: SqlExecutor,
  schema: string,
  rest: string,
  parameters: Readonly<Record<string, SqlParameter>>,
  options?: SqlCallOptions,
): Promise<readonly EventStatusRow[]> {
  const sql = `SELECT CAST(s.id AS text) AS id, s.event_type, s.aggregate_type, s.aggregate_id, s.ordering_key, s.destination, s.status,
      s.detail, s.attempts, CAST(s.replays AS integer) AS replays, ${milliseconds('created_at')}, ${millisecondsOrNull('due_at')},
      ${millisecondsOrNull('retry_at')}, ${milliseconds('failed_at')}, ${milliseconds('delivered_at')}, s.broker_message_id,
      s.last_error_code, s.last_error, s.headers, s.payload_bytes, CAST(s.shard AS integer) AS shard, s.seq
    FROM ${quotedSchema(schema)}.outbox_status s ${rest}`
  const { rows } = await executor.execute({ sql, parameters, repeatable: true }, options)
  return rows.map(statusRow)
}

function statusRow(row: SqlRow): EventStatusRow {
  const seq = row['seq']
  return {
    id: text(row, 'id'),
    eventType: text(row, 'event_type'),
    aggregateType: textOrNull(row, 'aggregate_type'),
    aggregateId: textOrNull(row, 'aggregate_id'),
    orderingKey: textOrNull(row, 'ordering_key'),
    destination: textOrNull(row, 'destination'),
    status: text(row, 'status') as EventStatus,
    detail: textOrNull(row, 'detail'),
    attempts: integer(row, 'attempts'),
    replays: integer(row, 'replays'),
    createdAtMs: integer(row, 'created_at_ms'),
    dueAtMs: integerOrNull(row, 'due_at_ms'),
    retryAtMs: integerOrNull(row, 'retry_at_ms'),
    failedAtMs: integerOrNull(row, 'failed_at_ms'),
    deliveredAtMs: integerOrNull(row, 'delivered_at_ms'),
    brokerMessageId: textOrNull(row, 'broker_message_id'),
    lastErrorCode: textOrNull(row, 'last_error_code'),
    lastError: textOrNull(row, 'last_error'),
    headers: textOrNull(row, 'headers'),
    payloadBytes: integer(row, 'payload_bytes'),
    shard: integerOrNull(row, 'shard'),
    seq: seq === null || seq === undefined ? null : BigInt(seq),
  }
}
