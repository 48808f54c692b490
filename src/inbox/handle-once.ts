import { ConfigurationError, InvalidEventError } from '../core/errors.js'
import type { SqlExecutor } from '../core/ports.js'
import { recordHandledStatement } from '../store/postgres/handle-once.js'

/** An open transaction: what `outbox.transaction()`, `database.begin()` and `database.joinTransaction()` give. */
export interface InboxTransaction extends SqlExecutor {
  readonly transactionId: string
}

export type Handled<Value> = { readonly handled: true; readonly value: Value } | { readonly handled: false }

export interface InboxOptions {
  /** Schema of the table `outbox_inbox` in the consumer's database. Default `public`. */
  readonly schema?: string | undefined
}

/**
 * Runs `effect` if this event was not handled before, and records its id in the same transaction: they are committed or
 * rolled back together. A second consumer with the same id waits until the first one's transaction ends.
 *
 * If `effect` throws, roll the transaction back: committed all the same, the event would count as handled.
 *
 * Throws what `effect` threw, `SqlError`, or `InvalidEventError` for an id that cannot be recorded.
 *
 * @example
 * await outbox.transaction((tx) =>
 *   handleOnce(tx, event.id, async () => {
 *     await tx.execute('UPDATE stock SET reserved = reserved + 1 WHERE sku = :sku', { sku })
 *     await tx.writeEvents([{ eventType: 'StockReserved', payload: { sku } }])
 *   }),
 * )
 */
export async function handleOnce<Tx extends InboxTransaction, Value>(
  tx: Tx,
  eventId: string,
  effect: (tx: Tx) => Promise<Value>,
  { schema = 'public' }: InboxOptions = {},
): Promise<Handled<Value>> {
  // outside a transaction the id would be there without the effect
  if (typeof (tx as { readonly transactionId?: unknown }).transactionId !== 'string') {
    throw new ConfigurationError('tx', 'tx must be an open transaction with a transactionId, not a database')
  }
  requireEventId(eventId)
  const { rows } = await tx.execute(recordHandledStatement(eventId, crypto.randomUUID(), schema))
  return rows[0]?.['recorded'] === true ? { handled: true, value: await effect(tx) } : { handled: false }
}

/** An id is the primary key of an index row, which holds about 2,700 bytes; CloudEvents ids are far shorter. */
const maxIdBytes = 1_024

function requireEventId(eventId: unknown): asserts eventId is string {
  if (typeof eventId !== 'string')
    throw new InvalidEventError('eventId', `eventId must be a string, not of type ${typeof eventId}`)
  const bytes = Buffer.byteLength(eventId)
  if (bytes < 1 || bytes > maxIdBytes)
    throw new InvalidEventError('eventId', `eventId must have 1 to ${maxIdBytes} bytes, not ${bytes}`)
}
