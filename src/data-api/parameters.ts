import type { Field, SqlParameter as DataApiParameter } from '@aws-sdk/client-rds-data'
import { SqlError } from '../core/errors.js'
import type { SqlParameter } from '../core/ports.js'

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n

/** Encodes named parameters. Throws `SqlError` (permanent) that names the parameter, never its value. */
export function encodeParameters(parameters: Readonly<Record<string, SqlParameter>> = {}): DataApiParameter[] {
  return Object.entries(parameters).map(([name, value]) => ({ name, value: encodeParameter(name, value) }))
}

function encodeParameter(name: string, value: SqlParameter): Field {
  if (value === null) return { isNull: true }
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { booleanValue: value }
  if (typeof value === 'number') {
    if (Number.isSafeInteger(value)) return { longValue: value }
    throw refused(name, 'a number that is not an integer within +-(2^53 - 1)', 'a bigint, or a string that the SQL casts')
  }
  // callers without types may pass anything else
  if (typeof (value as unknown) !== 'bigint')
    throw refused(name, typeof value, 'string, boolean, null, or an integer as number or bigint')
  if (value < int64Min || value > int64Max) throw refused(name, 'a bigint beyond 64 bits', 'a string that the SQL casts')
  // the SDK types longValue as number, but writes a bigint digit by digit
  return { longValue: value as unknown as number }
}

function refused(name: string, seen: string, allowed: string): SqlError {
  return new SqlError('permanent', `parameter "${name}" is ${seen}; allowed: ${allowed}`, { errorName: 'InvalidParameter' })
}
