import type { SqlCallOptions, SqlExecutor } from '../../core/ports.js'
import { boolean, integer, integerOrNull, text, textOrNull } from './row.js'
import { quotedSchema } from './sql-name.js'

/** A destination whose circuit is not closed, or that events are put aside for. */
export interface CircuitReport {
  readonly destination: string
  /** `half-open`: the next relay that looks tries it. null: events are aside without a circuit, and nobody brings them back. */
  readonly state: 'open' | 'half-open' | 'closed' | null
  readonly openedAtMs: number | null
  /** When it is tried next. */
  readonly retryAtMs: number | null
  /** Faults that opened it and kept it open. */
  readonly failures: number
  /** Waiting will not heal it. */
  readonly configuration: boolean
  readonly errorCode: string | null
  readonly error: string | null
  /** Events put aside for it; those that wait behind them for their ordering key are not counted. */
  readonly heldEvents: number
}

/**
 * The circuits that an operator should know of, by destination.
 *
 * @example
 * await readCircuits(database, 'public') // [{ destination: 'queue', state: 'open', heldEvents: 120, ... }]
 */
export async function readCircuits(
  executor: SqlExecutor,
  schema: string,
  options?: SqlCallOptions,
): Promise<readonly CircuitReport[]> {
  const sql = `SELECT * FROM ${quotedSchema(schema)}.outbox_circuit_report()`
  const { rows } = await executor.execute({ sql, repeatable: true }, options)
  return rows.map((row) => ({
    destination: text(row, 'destination'),
    state: textOrNull(row, 'state') as CircuitReport['state'],
    openedAtMs: integerOrNull(row, 'opened_at_ms'),
    retryAtMs: integerOrNull(row, 'retry_at_ms'),
    failures: integer(row, 'failures'),
    configuration: boolean(row, 'configuration'),
    errorCode: textOrNull(row, 'error_code'),
    error: textOrNull(row, 'error'),
    heldEvents: integer(row, 'held'),
  }))
}
