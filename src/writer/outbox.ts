import { OutboxError } from '../core/errors.js'
import type { SqlCallOptions, SqlExecutor, SqlParameter, SqlResult, SqlStatement } from '../core/ports.js'
import type { DataApiDatabase } from '../data-api/database.js'
import type { DataApiTransaction } from '../data-api/transaction.js'
import { commitOutcomeStatement, type NewEventRow, type TransactionTrace } from '../store/postgres/insert-events.js'
import { quotedSchema } from '../store/postgres/sql-name.js'
import { createDeliveryCheck, type DeliveryOptions } from './delivery-check.js'
import { createEventIds } from './event-id.js'
import { insertEvents } from './insert.js'
import type { NewEvent } from './new-event.js'
import { requireEvents, rowOf } from './validate-event.js'
import { warn, warnByProcess, type OnWarning } from './warning.js'

export interface OutboxOptions extends DeliveryOptions {
  /** Where the service's own tables and the outbox are. Its user needs the role `outbox_writer`. */
  readonly database: DataApiDatabase
  /** Schema of the outbox. Default `public`. */
  readonly schema?: string | undefined
  /** Hears what is allowed and seldom meant, about every event. Default: `process.emitWarning`, once for each event type. */
  readonly onWarning?: OnWarning | undefined
}

export interface TransactionOptions {
  /**
   * How often the transaction is tried in all when it is lost by a deadlock, a lock timeout (`KeyBusyError` is one), a
   * serialization failure or a broken connection. Default 3; 1 never runs the function twice.
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
  /**
   * Adds events to the transaction and answers their ids; of an event whose idempotency key exists, the id of the event that
   * has it. They are written all at once, just before the commit; but at once if one of these has an idempotency key, because
   * only the database knows whether it exists.
   *
   * Throws `InvalidEventError`, at once and not by the promise, and then none of these is added.
   */
  writeEvents(events: readonly NewEvent[]): Promise<readonly string[]>
}

export interface Outbox {
  /**
   * Runs `work` in a transaction and commits it with the events it wrote; if `work` throws, nothing of either is left.
   * A commit whose reply is lost is looked up by what it wrote, so that resolving means committed.
   *
   * `work` may run more than once (see `maxAttempts`): do nothing in it that a rollback does not undo.
   *
   * Throws what `work` threw, `InvalidEventError`, or `SqlError`; of kind `ambiguous` only if nothing can tell whether the
   * commit happened; `KeyBusyError` if every attempt met another transaction that held an ordering key for 5 s.
   *
   * @example
   * await outbox.transaction(async (tx) => {
   *   await tx.execute('INSERT INTO orders (id) VALUES (:id)', { id: 42 })
   *   await tx.writeEvents([{ eventType: 'OrderCreated', orderingKey: 'order-42', payload: { orderId: 42 } }])
   * })
   */
  transaction<Value>(work: (tx: OutboxTransaction) => Promise<Value>, options?: TransactionOptions): Promise<Value>
  /**
   * Writes events in a transaction and answers their ids: one of `transaction()` collects them, any other gets them at once,
   * in one statement. The latter is begun, committed and, after any error, rolled back by whoever owns it; write its events
   * last, because their ordering keys stay locked until it ends. Rejects with `InvalidEventError`, `KeyBusyError` or `SqlError`.
   *
   * @example
   * const { transactionId } = await client.send(new BeginTransactionCommand({ resourceArn, secretArn, database }))
   * await outbox.writeEvents({ transactionId }, [{ eventType: 'OrderCreated', payload: { orderId: 42 } }])
   */
  writeEvents(tx: { readonly transactionId: string }, events: readonly NewEvent[]): Promise<readonly string[]>
}

const nextEventId = createEventIds()

/**
 * The writing side of an outbox. Throws `ConfigurationError` for a schema name that is none, and for a destination that does
 * not exist.
 *
 * @example
 * const database = createDataApiDatabase({ resourceArn, secretArn, database: 'orders' })
 * const outbox = createOutbox({ database, destinations: { bus: { type: 'eventbridge', eventBusName: 'orders' } }, default: 'bus' })
 */
export function createOutbox(options: OutboxOptions): Outbox {
  const { database, schema = 'public', onWarning = warnByProcess() } = options
  quotedSchema(schema)
  const requireDeliverable = createDeliveryCheck(options)

  const rowsOf = (events: readonly NewEvent[]): NewEventRow[] => {
    requireEvents(events)
    const rows = events.map((event) => rowOf(event, nextEventId()))
    rows.forEach(requireDeliverable)
    for (const row of rows) warn(row, onWarning)
    return rows
  }

  return {
    transaction: (work, transactionOptions) => {
      let trace: TransactionTrace | undefined
      return database.transaction(
        async (tx) => {
          trace = undefined
          const collecting = new CollectingTransaction(tx, schema, rowsOf)
          const value = await work(collecting).finally(() => collecting.close())
          trace = await collecting.writeAll()
          return value
        },
        {
          ...transactionOptions,
          proof: () => (trace === undefined ? undefined : commitOutcomeStatement(trace, schema)),
        },
      )
    },

    writeEvents: async (tx, events) => {
      if (tx instanceof CollectingTransaction) return tx.writeEvents(events)
      const rows = rowsOf(events)
      return (await insertEvents(database.joinTransaction(tx.transactionId), rows, schema)).ids
    },
  }
}

class CollectingTransaction implements OutboxTransaction {
  readonly transactionId: string
  #open = true
  #collected: NewEventRow[] = []
  /** None is ever forgotten: what one of them failed to write must not be missing from a commit. */
  #writes: Promise<TransactionTrace>[] = []

  constructor(
    private readonly tx: DataApiTransaction,
    private readonly schema: string,
    private readonly rowsOf: (events: readonly NewEvent[]) => NewEventRow[],
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

  writeEvents(events: readonly NewEvent[]): Promise<readonly string[]> {
    this.#requireOpen()
    const rows = this.rowsOf(events)
    this.#collected.push(...rows)
    if (rows.every((row) => row.idempotencyKey === undefined)) return Promise.resolve(rows.map((row) => row.id))
    const ids = this.#write().then((all) => all.slice(-rows.length))
    ids.catch(() => undefined) // whoever does not await it gets it from writeAll
    return ids
  }

  /** Writes what is left, and answers how to recognise the transaction. */
  async writeAll(): Promise<TransactionTrace | undefined> {
    if (this.#collected.length > 0) await this.#write()
    const traces = await Promise.all(this.#writes)
    return traces.find((trace) => trace.eventId !== undefined) ?? traces[0]
  }

  close(): void {
    this.#open = false
  }

  async #write(): Promise<readonly string[]> {
    const written = insertEvents(this.tx, this.#collected.splice(0), this.schema)
    const trace = written.then((events) => events.trace)
    trace.catch(() => undefined) // writeAll throws it
    this.#writes.push(trace)
    return (await written).ids
  }

  #requireOpen(): void {
    if (this.#open) return
    throw new OutboxError('TransactionOver', 'the function given to transaction() has ended; await every call of tx inside it')
  }
}
