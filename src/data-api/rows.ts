import type { ExecuteStatementCommandOutput, Field } from '@aws-sdk/client-rds-data'
import { SqlError } from '../core/errors.js'
import type { SqlRow, SqlValue } from '../core/ports.js'

/** Names as the JDBC driver behind the service reports them: a column with a sequence is called by its pseudo type. */
const bigintTypes = new Set(['int8', 'bigserial'])
const numberTypes = new Set(['int2', 'int4', 'smallserial', 'serial'])

/** Decodes an answer that was asked for with its metadata and `longReturnType: 'STRING'`. */
export function decodeRows(answer: Pick<ExecuteStatementCommandOutput, 'records' | 'columnMetadata'>): SqlRow[] {
  const columns = (answer.columnMetadata ?? []).map((column) => ({
    name: column.label ?? column.name ?? '',
    type: (column.typeName ?? '').toLowerCase(),
  }))
  return (answer.records ?? []).map((record) =>
    Object.fromEntries(
      record.map((field, index) => {
        const column = columns[index]
        if (column === undefined) throw undecodable(`column ${index + 1}`, 'came without metadata')
        return [column.name, decodeField(field, column)]
      }),
    ),
  )
}

function decodeField(field: Field, column: { readonly name: string; readonly type: string }): SqlValue {
  if (field.isNull === true) return null
  if (field.booleanValue !== undefined) return field.booleanValue
  if (field.doubleValue !== undefined) return field.doubleValue

  const isBigint = bigintTypes.has(column.type)
  if (field.stringValue !== undefined) {
    if (isBigint) return BigInt(field.stringValue)
    return numberTypes.has(column.type) ? Number(field.stringValue) : field.stringValue
  }
  if (field.longValue !== undefined) {
    // a larger one has lost digits in the SDK's JSON parser already
    if (!Number.isSafeInteger(field.longValue))
      throw undecodable(`column "${column.name}"`, 'is an integer beyond 2^53 sent as a number')
    return isBigint ? BigInt(field.longValue) : field.longValue
  }
  throw undecodable(`column "${column.name}"`, `has type ${column.type}, which is not read`)
}

function undecodable(column: string, problem: string): SqlError {
  return new SqlError('permanent', `${column} of the answer ${problem}; cast it to text, bigint, integer or boolean in the SQL`, {
    errorName: 'UnsupportedResult',
  })
}
