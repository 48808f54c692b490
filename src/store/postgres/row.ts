import { SqlError } from '../../core/errors.js'
import type { SqlRow, SqlValue } from '../../core/ports.js'

// Reads columns of an answer. A column of another type means that function and code do not fit each other.

export function text(row: SqlRow, column: string): string {
  const value = row[column]
  return typeof value === 'string' ? value : mismatch(column, 'text', value)
}

export function textOrNull(row: SqlRow, column: string): string | null {
  return row[column] === null ? null : text(row, column)
}

/** Counts, milliseconds and bytes: far below 2^53, so a number is exact. */
export function integer(row: SqlRow, column: string): number {
  const value = row[column]
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : mismatch(column, 'an integer', value)
}

export function integerOrNull(row: SqlRow, column: string): number | null {
  return row[column] === null ? null : integer(row, column)
}

export function bigint(row: SqlRow, column: string): bigint {
  const value = row[column]
  return typeof value === 'number' || typeof value === 'bigint' ? BigInt(value) : mismatch(column, 'an integer', value)
}

export function boolean(row: SqlRow, column: string): boolean {
  const value = row[column]
  return typeof value === 'boolean' ? value : mismatch(column, 'a boolean', value)
}

function mismatch(column: string, wanted: string, value: SqlValue | undefined): never {
  const found = value === undefined ? 'missing' : value === null ? 'null' : typeof value
  throw new SqlError('permanent', `column "${column}" of the answer is ${found}, not ${wanted}`, {
    errorName: 'UnexpectedAnswer',
  })
}

/** The only row of an answer. */
export function single(rows: readonly SqlRow[]): SqlRow {
  const [row] = rows
  if (row === undefined || rows.length > 1) {
    throw new SqlError('permanent', `the answer has ${rows.length} rows, not 1`, { errorName: 'UnexpectedAnswer' })
  }
  return row
}
