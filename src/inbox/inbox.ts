import type { DataApiDatabase } from '../data-api/database.js'
import type { DataApiTransaction } from '../data-api/transaction.js'
import { quotedSchema } from '../store/postgres/sql-name.js'
import { handleOnce, type Handled, type InboxOptions } from './handle-once.js'

export interface Inbox {
  /**
   * Runs `effect` in a transaction of its own if this event was not handled before, and commits it with the event's id.
   * Resolves only when that is certain; throws if it is not, and then the message must be received again.
   *
   * A transaction that is lost by chance (deadlock, lock timeout, broken connection) is tried up to three times, `effect`
   * with it: do nothing in it that a rollback does not undo.
   *
   * @example
   * const { handled } = await inbox.handleOnce(event.id, async (tx) => {
   *   await tx.execute({ sql: 'UPDATE stock SET reserved = reserved + 1 WHERE sku = :sku', parameters: { sku }, repeatable: false })
   * })
   */
  handleOnce<Value>(eventId: string, effect: (tx: DataApiTransaction) => Promise<Value>): Promise<Handled<Value>>
}

/**
 * The consumer's record of handled events, in its own database: table `outbox_inbox`, made by `migrate --inbox`. Throws
 * `ConfigurationError` for a schema name that is none.
 *
 * @example
 * const inbox = createInbox({ database: createDataApiDatabase({ resourceArn, secretArn, database: 'stock' }) })
 */
export function createInbox({ database, schema = 'public' }: InboxOptions & { readonly database: DataApiDatabase }): Inbox {
  const table = `${quotedSchema(schema)}.outbox_inbox`
  return {
    handleOnce: (eventId, effect) =>
      database.transaction((tx) => handleOnce(tx, eventId, effect, { schema }), {
        // whoever recorded it, also a consumer that took over after this transaction was lost: the effect is there, once
        proof: () => ({
          sql: `SELECT 1 AS handled FROM ${table} WHERE event_id = :event_id`,
          parameters: { event_id: eventId },
          repeatable: true,
        }),
      }),
  }
}
