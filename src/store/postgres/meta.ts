import type { OutboxMeta, SqlCallOptions, SqlExecutor } from '../../core/ports.js'
import { integer, single, text, textOrNull } from './row.js'
import { quotedSchema } from './sql-name.js'

/** Which schema this is, and whom it serves. */
export async function readMeta(executor: SqlExecutor, schema: string, options?: SqlCallOptions): Promise<OutboxMeta> {
  const sql = `SELECT schema_version, min_relay_version, installation FROM ${quotedSchema(schema)}.outbox_meta`
  const { rows } = await executor.execute({ sql, repeatable: true }, options)
  const row = single(rows)
  return {
    schemaVersion: integer(row, 'schema_version'),
    minRelayVersion: text(row, 'min_relay_version'),
    installation: textOrNull(row, 'installation'),
  }
}
