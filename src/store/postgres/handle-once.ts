import type { SqlStatement } from '../../core/ports.js'
import { quotedSchema } from './sql-name.js'

/**
 * Records in `outbox_inbox` that an event is handled. Column `recorded`: true for whoever is first, false if it was handled before.
 *
 * A second transaction with the same id waits until the first one ends. `call`, different for each call, makes the statement
 * repeatable: sent twice, by a proxy that does not tell, it finds its own row, and knows it by what it left in the transaction.
 */
export function recordHandledStatement(eventId: string, call: string, schema: string): SqlStatement {
  return {
    sql: `WITH own AS (
         INSERT INTO ${quotedSchema(schema)}.outbox_inbox (event_id) VALUES (:event_id) ON CONFLICT (event_id) DO NOTHING RETURNING 1)
       SELECT COALESCE(CASE WHEN EXISTS (SELECT FROM own) THEN set_config('outbox.recorded_by', :call, true)
         ELSE current_setting('outbox.recorded_by', true) END = :call, false) AS recorded`,
    parameters: { event_id: eventId, call },
    repeatable: true,
  }
}
