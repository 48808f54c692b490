import type { SqlCallOptions, SqlExecutor } from '../../core/ports.js'
import { integer, text } from './row.js'
import { quotedSchema } from './sql-name.js'

/** 12,000 characters of at most 4 bytes stay below the Data API's 64 KB a row, 20 of them below its 1 MiB an answer. */
const chunkCharacters = 12_000
const chunksPerCall = 20

/** A payload of any size, chunk by chunk; null if the event's row is gone. */
export async function readPayload(
  executor: SqlExecutor,
  schema: string,
  id: string,
  options?: SqlCallOptions,
): Promise<string | null> {
  const sql = `SELECT * FROM ${quotedSchema(schema)}.outbox_payload_chunks(CAST(:id AS uuid), CAST(:first AS integer),
    CAST(:count AS integer), CAST(:chars AS integer))`
  const parts: string[] = []
  for (;;) {
    const parameters = { id, first: parts.length, count: chunksPerCall, chars: chunkCharacters }
    const { rows } = await executor.execute({ sql, parameters, repeatable: true }, options)
    const [first] = rows
    if (first === undefined) return null
    parts.push(...rows.map((row) => text(row, 'part')))
    if (parts.length >= integer(first, 'chunks')) return parts.join('')
  }
}
