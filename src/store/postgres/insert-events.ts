import type { SqlStatement } from '../../core/ports.js'
import { quotedSchema } from './sql-name.js'

/** One row of `outbox` to be written; what is absent takes the column's default. */
export interface NewEventRow {
  /** UUID, made by the caller: with it the insert can be repeated. */
  readonly id: string
  readonly eventType: string
  /** JSON text; stored byte for byte. */
  readonly payload: string
  /** Default 1. */
  readonly eventVersion?: number | undefined
  readonly aggregateType?: string | undefined
  readonly aggregateId?: string | undefined
  readonly orderingKey?: string | undefined
  readonly destination?: string | undefined
  /** A JSON object of strings, as text. */
  readonly headers?: string | undefined
  readonly idempotencyKey?: string | undefined
  /** Not before; a timestamp with its zone, as PostgreSQL reads it (ISO 8601). */
  readonly availableAt?: string | undefined
}

/** As a number: as a date it would be written as the session's settings say. */
const server = 'CAST(extract(epoch FROM pg_postmaster_start_time()) AS text)'
const askingTransaction = `CAST(pg_current_xact_id() AS text) AS xid, ${server} AS server`

/**
 * One statement that writes all of `events`, in their order, and answers for those it wrote the columns `id`, and `xid` and
 * `server`, the transaction that did and where (see `commitOutcomeStatement`).
 *
 * An event whose id or idempotency key is in the outbox already is left out, so the statement may be repeated. If another
 * transaction that is still open wrote that key, the statement waits for its end. The events travel as one JSON parameter,
 * each payload as a string in it, so that PostgreSQL gets back exactly the text that the caller gave.
 */
export function insertEventsStatement(events: readonly NewEventRow[], schema: string): SqlStatement {
  return {
    // ordered by position: within a key, the order of the list is the order of delivery
    sql: `INSERT INTO ${quotedSchema(schema)}.outbox (id, event_type, event_version, aggregate_type, aggregate_id, ordering_key,
         destination, headers, payload, idempotency_key, available_at)
       SELECT e.id, e.event_type, COALESCE(e.event_version, 1), e.aggregate_type, e.aggregate_id, e.ordering_key,
         e.destination, e.headers, e.payload, e.idempotency_key, e.available_at
       FROM ROWS FROM (json_to_recordset(CAST(:events AS json)) AS (id uuid, event_type text, event_version integer,
         aggregate_type text, aggregate_id text, ordering_key text, destination text, headers text, payload text,
         idempotency_key text, available_at timestamptz)) WITH ORDINALITY
         AS e(id, event_type, event_version, aggregate_type, aggregate_id, ordering_key, destination, headers, payload,
         idempotency_key, available_at, position)
       ORDER BY e.position
       ON CONFLICT DO NOTHING
       RETURNING CAST(id AS text) AS id, ${askingTransaction}`,
    parameters: {
      events: JSON.stringify(
        events.map((event) => ({
          id: event.id,
          event_type: event.eventType,
          event_version: event.eventVersion,
          aggregate_type: event.aggregateType,
          aggregate_id: event.aggregateId,
          ordering_key: event.orderingKey,
          destination: event.destination,
          headers: event.headers,
          payload: event.payload,
          idempotency_key: event.idempotencyKey,
          available_at: event.availableAt,
        })),
      ),
    },
    repeatable: true,
  }
}

/**
 * The events that have these idempotency keys: columns `idempotency_key`, `id`, and `xid` and `server` of the asking
 * transaction. A statement of its own, because the one that waited for another transaction's end does not see what that one wrote.
 */
export function eventsByIdempotencyKeyStatement(keys: readonly string[], schema: string): SqlStatement {
  return {
    // an array, not a join: so the index is used, whatever the statistics say
    sql: `SELECT idempotency_key, CAST(id AS text) AS id, ${askingTransaction}
       FROM ${quotedSchema(schema)}.outbox
       WHERE idempotency_key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))))`,
    parameters: { keys: JSON.stringify(keys) },
    repeatable: true,
  }
}

/** Columns `xid` and `server` of the asking transaction. */
export const transactionStatement: SqlStatement = { sql: `SELECT ${askingTransaction}`, repeatable: true }

/** What tells a transaction apart afterwards. */
export interface TransactionTrace {
  /** An event that it wrote, if it wrote one. */
  readonly eventId: string | undefined
  readonly xid: string
  /** When the server started on which it ran: a number is given again after a crash that left nothing of its transaction. */
  readonly server: string
}

/**
 * What became of a transaction: column `outcome`, `committed`, `aborted`, `in progress` or `absent`; null if it is too long ago, or
 * if it wrote no event and its server has been restarted since. Its event proves that it committed. That it never will is known
 * from the server. One that was restarted knows only that the event is not there: never written, or cleaned up since.
 */
export function commitOutcomeStatement(trace: TransactionTrace, schema: string): SqlStatement {
  return {
    // a number that counts as committed without its event was committed during this very look, or is another transaction's
    sql: `SELECT CASE
         WHEN EXISTS (SELECT 1 FROM ${quotedSchema(schema)}.outbox WHERE id = CAST(:id AS uuid)) THEN 'committed'
         WHEN :server <> ${server} THEN CASE WHEN CAST(:id AS uuid) IS NOT NULL THEN 'absent' END
         WHEN CAST(:id AS uuid) IS NULL THEN pg_xact_status(CAST(:xid AS xid8))
         ELSE replace(pg_xact_status(CAST(:xid AS xid8)), 'committed', 'in progress') END AS outcome`,
    parameters: { id: trace.eventId ?? null, xid: trace.xid, server: trace.server },
    repeatable: true,
  }
}
