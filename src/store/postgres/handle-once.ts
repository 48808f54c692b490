import type { SqlStatement } from '../../core/ports.js'
import { quotedSchema } from './sql-name.js'

/**
 * Records in `outbox_inbox` that an event is handled: `updatedRows` is 1 for whoever is first, 0 if it was handled before.
 *
 * A second transaction with the same id waits until the first one ends. Not repeatable: a repeat inside the same
 * transaction would find its own row and answer 0, and the effect would be skipped.
 */
export function recordHandledStatement(eventId: string, schema: string): SqlStatement {
  return {
    sql: `INSERT INTO ${quotedSchema(schema)}.outbox_inbox (event_id) VALUES (:event_id) ON CONFLICT (event_id) DO NOTHING`,
    parameters: { event_id: eventId },
    repeatable: false,
  }
}
