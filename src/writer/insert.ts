import { InvalidEventError, SqlError } from '../core/errors.js'
import type { SqlExecutor } from '../core/ports.js'
import { insertEventsStatement, type NewEventRow } from '../store/postgres/insert-events.js'

/** 4 MiB, less room for headers, ARNs and the SQL. */
const maxEventsBytes = 4 * 1_024 * 1_024 - 16_384

/** Writes all rows in one statement: it locks all their ordering keys at once, in an order that cannot deadlock. */
export async function insertEvents(tx: SqlExecutor, rows: readonly NewEventRow[], schema: string): Promise<void> {
  const statement = insertEventsStatement(rows, schema)
  const bytes = Buffer.byteLength(JSON.stringify(statement.parameters))
  if (bytes > maxEventsBytes) {
    throw new InvalidEventError(
      'payload',
      `the ${rows.length} events of the transaction make a request of ${bytes} bytes, and the RDS Data API takes ${maxEventsBytes}: write fewer or smaller ones`,
    )
  }
  try {
    await tx.execute(statement)
  } catch (error) {
    throw error instanceof SqlError ? explained(error) : error
  }
}

/** Says in the writer's words what a caller can do something about. */
function explained(error: SqlError): SqlError {
  const advice =
    error.sqlState === '23505' && error.message.includes('outbox_idempotency_key')
      ? 'an event with the same idempotencyKey was written before'
      : error.sqlState === '55P03'
        ? 'another transaction holds an ordering key of these events; try the transaction again'
        : undefined
  if (advice === undefined) return error
  return new SqlError(error.kind, `${advice} (${error.message})`, {
    errorName: error.errorName,
    sqlState: error.sqlState,
    cause: error,
  })
}
