import { OutboxError } from '../core/errors.js'
import type { SqlCallOptions, SqlExecutor, SqlParameter, SqlResult, SqlStatement } from '../core/ports.js'
import type { DataApiDatabase } from '../data-api/database.js'
import type { DataApiTransaction } from '../data-api/transaction.js'
import type { NewEventRow } from '../store/postgres/insert-events.js'
import { quotedSchema } from '../store/postgres/sql-name.js'
import { createEventIds } from './event-id.js'
import { insertEvents } from './insert.js'
import type { NewEvent } from './new-event.js'
import { rowOf } from './validate-event.js'

export interface OutboxOptions {
  /** Where the service's own tables and the outbox are. Its user needs the role `outbox_writer`. */
  readonly database: DataApiDatabase
  /** Schema of the outbox. Default `public`. */
  readonly schema?: string | undefined
}

export interface TransactionOptions {
  /**
   * How often the transaction is tried in all when it is lost by a deadlock, a lock timeout, a serialization failure or a
   * broken connection. Default 3; 1 never runs the function twice.
   */
  readonly maxAttempts?: number | undefined
}

/** One transaction of the service, and the events it will leave behind if it commits. */
export interface OutboxTransaction extends SqlExecutor {
  /** The Data API's id, for calls with a client of your own. */
  readonly transactionId: string
  /**
   * Runs one statement with `:name` parameters. Strings travel as text and integers as bigint: cast what is neither.
   *
   * @example
   * await tx.execute('INSERT INTO orders (id, total) VALUES (CAST(:id AS uuid), :total)', { id, total: 42 })
   */
  execute(sql: string, parameters?: Readonly<Record<string, SqlParameter>>): Promise<SqlResult>
  execute(statement: SqlStatement, options?: SqlCallOptions): Promise<SqlResult>
  /** Adds events to the transaction; answers their ids. They are written all at once, just before the commit. Throws `InvalidEventError`. */
  writeEvents(events: readonly NewEvent[]): readonly string[]
}

export interface Outbox {
  /**
   * Runs `work` in a transaction and commits it with the events it wrote; if `work` throws, nothing of either is left.
   * A commit whose reply is lost is looked up by the events' ids, so that resolving means committed.
   *
   * `work` may run more than once (see `maxAttempts`): do nothing in it that a rollback does not undo.
   *
   * Throws what `work` threw, `InvalidEventError`, or `SqlError`; of kind `ambiguous` only if nothing can tell whether the
   * commit happened.
   *
   * @example
   * await outbox.transaction(async (tx) => {
   *   await tx.execute('INSERT INTO orders (id) VALUES (:id)', { id: 42 })
   *   tx.writeEvents([{ eventType: 'OrderCreated', orderingKey: 'order-42', payload: { orderId: 42 } }])
   * })
   */
  transaction<Value>(work: (tx: OutboxTransaction) => Promise<Value>, options?: TransactionOptions): Promise<Value>
  /**
   * Writes events in a transaction and answers their ids: one of `transaction()` collects them, any other gets them at once,
   * in one statement. The latter is begun, committed and, after any error, rolled back by whoever owns it; write its events
   * last, because their ordering keys stay locked until it ends.
   *
   * @example
   * const { transactionId } = await client.send(new BeginTransactionCommand({ resourceArn, secretArn, database }))
   * await outbox.writeEvents({ transactionId }, [{ eventType: 'OrderCreated', payload: { orderId: 42 } }])
   */
  writeEvents(tx: { readonly transactionId: string }, events: readonly NewEvent[]): Promise<readonly string[]>
}

const nextEventId = createEventIds()

/**
 * The writing side of an outbox. Throws `ConfigurationError` for a schema name that is none.
 *
 * @example
 * const database = createDataApiDatabase({ resourceArn, secretArn, database: 'orders' })
 * const outbox = createOutbox({ database })
 */
export function createOutbox({ database, schema = 'public' }: OutboxOptions): Outbox {
  const table = `${quotedSchema(schema)}.outbox`
  const proofOf = (id: string): SqlStatement => ({
    sql: `SELECT 1 AS written FROM ${table} WHERE id = CAST(:id AS uuid)`,
    parameters: { id },
    repeatable: true,
  })

  return {
    transaction: (work, options) => {
      let firstId: string | undefined
      return database.transaction(
        async (tx) => {
          const rows: NewEventRow[] = []
          const collecting = new CollectingTransaction(tx, rows)
          const value = await work(collecting).finally(() => collecting.close())
          firstId = rows[0]?.id
          if (rows.length > 0) await insertEvents(tx, rows, schema)
          return value
        },
        { ...options, proof: () => (firstId === undefined ? undefined : proofOf(firstId)) },
      )
    },

    writeEvents: async (tx, events) => {
      if (tx instanceof CollectingTransaction) return tx.writeEvents(events)
      const rows = events.map((event) => rowOf(event, nextEventId()))
      if (rows.length > 0) await insertEvents(database.joinTransaction(tx.transactionId), rows, schema)
      return rows.map((row) => row.id)
    },
  }
}

class CollectingTransaction implements OutboxTransaction {
  readonly transactionId: string
  #open = true

  constructor(
    private readonly tx: DataApiTransaction,
    private readonly rows: NewEventRow[],
  ) {
    this.transactionId = tx.transactionId
  }

  async execute(
    statement: string | SqlStatement,
    parametersOrOptions: Readonly<Record<string, SqlParameter>> | SqlCallOptions = {},
  ): Promise<SqlResult> {
    this.#requireOpen()
    return typeof statement === 'string'
      ? this.tx.execute({
          sql: statement,
          parameters: parametersOrOptions as Readonly<Record<string, SqlParameter>>,
          repeatable: false,
        })
      : this.tx.execute(statement, parametersOrOptions)
  }

  writeEvents(events: readonly NewEvent[]): readonly string[] {
    this.#requireOpen()
    const added = events.map((event) => rowOf(event, nextEventId()))
    this.rows.push(...added)
    return added.map((row) => row.id)
  }

  close(): void {
    this.#open = false
  }

  #requireOpen(): void {
    if (this.#open) return
    throw new OutboxError('TransactionOver', 'the function given to transaction() has ended; await every call of tx inside it')
  }
}
