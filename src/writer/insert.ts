import { InvalidEventError, KeyBusyError, SqlError } from '../core/errors.js'
import type { SqlExecutor, SqlRow, SqlStatement } from '../core/ports.js'
import {
  eventsByIdempotencyKeyStatement,
  insertEventsStatement,
  transactionStatement,
  type NewEventRow,
  type TransactionTrace,
} from '../store/postgres/insert-events.js'

/** 4 MiB, less room for headers, ARNs and the SQL. */
const maxEventsBytes = 4 * 1_024 * 1_024 - 16_384

export interface WrittenEvents {
  /** One for each row: its own, or that of the event that had its idempotency key before. */
  readonly ids: readonly string[]
  readonly trace: TransactionTrace
}

/** Writes all rows in one statement: it locks all their ordering keys at once, in an order that cannot deadlock. */
export async function insertEvents(tx: SqlExecutor, rows: readonly NewEventRow[], schema: string): Promise<WrittenEvents> {
  const idByKey = new Map<string, string>()
  let eventId: string | undefined
  let asked: SqlRow | undefined
  let open = rows
  while (open.length > 0) {
    const written = await execute(tx, insertStatement(open, schema))
    const writtenIds = new Set(written.map((row) => text(row, 'id')))
    eventId ??= written[0] && text(written[0], 'id')
    asked ??= written[0]
    // without an idempotency key only the row itself can have been in its way, if the insert was sent twice without telling
    eventId ??= open.find((row) => row.idempotencyKey === undefined)?.id
    open = open.filter((row) => row.idempotencyKey !== undefined && !writtenIds.has(row.id))
    if (open.length === 0) break

    const keys = open.map((row) => row.idempotencyKey ?? '')
    for (const row of await execute(tx, eventsByIdempotencyKeyStatement(keys, schema))) {
      idByKey.set(text(row, 'idempotency_key'), text(row, 'id'))
      asked ??= row
    }
    // not there any more: cleanup was faster than this look, and so the key is free
    open = open.filter((row) => !idByKey.has(row.idempotencyKey ?? ''))
  }
  const [transaction] = asked === undefined ? await execute(tx, transactionStatement) : [asked]
  if (transaction === undefined) throw new TypeError('the database answered no row for its own transaction')
  return {
    ids: rows.map((row) => (row.idempotencyKey === undefined ? row.id : (idByKey.get(row.idempotencyKey) ?? row.id))),
    trace: { eventId, xid: text(transaction, 'xid'), server: text(transaction, 'server') },
  }
}

function insertStatement(rows: readonly NewEventRow[], schema: string): SqlStatement {
  const statement = insertEventsStatement(rows, schema)
  const bytes = Buffer.byteLength(JSON.stringify(statement.parameters))
  if (bytes > maxEventsBytes) {
    throw new InvalidEventError(
      'payload',
      `the ${rows.length} events of the transaction make a request of ${bytes} bytes, and the RDS Data API takes ${maxEventsBytes}: write fewer or smaller ones`,
    )
  }
  return statement
}

async function execute(tx: SqlExecutor, statement: SqlStatement): Promise<readonly SqlRow[]> {
  try {
    return (await tx.execute(statement)).rows
  } catch (error) {
    if (!(error instanceof SqlError) || error.sqlState !== '55P03') throw error
    throw new KeyBusyError(
      error.kind,
      `another transaction holds an ordering key or an idempotency key of these events; run the transaction again (${error.message})`,
      { errorName: error.errorName, sqlState: error.sqlState, cause: error },
    )
  }
}

function text(row: SqlRow, column: string): string {
  return String(row[column])
}
