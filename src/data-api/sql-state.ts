import type { SqlFailureKind } from '../core/errors.js'

/** What one call's SQLSTATE says about the statement; checked before its class. */
const kindByState: Readonly<Record<string, SqlFailureKind>> = {
  '40003': 'ambiguous', // statement completion unknown
  '55P03': 'rolled-back', // lock not available
  '57014': 'rolled-back', // cancelled, e.g. by statement_timeout
  '57P01': 'ambiguous', // the server is going down, and nobody says how far this connection had come
  '57P02': 'ambiguous',
  '57P03': 'not-executed', // cannot connect now
  '08001': 'not-executed',
  '08004': 'not-executed',
  '53300': 'not-executed', // too many connections
  '25P02': 'transaction-lost', // in a failed transaction
  '25P03': 'transaction-lost', // idle in transaction too long
}

const kindByClass: Readonly<Record<string, SqlFailureKind>> = {
  '08': 'ambiguous', // connection lost
  '40': 'rolled-back', // serialization failure, deadlock
  '53': 'rolled-back', // disk, memory
}

/** MySQL says HY000 for its lock wait timeout (1205), so its own number is looked at first. */
const kindByMysqlCode: Readonly<Record<string, SqlFailureKind>> = { '1205': 'rolled-back', '1213': 'rolled-back' }

/** The five characters, which the service gives only inside the message's text. */
export function sqlStateIn(message: string): string | undefined {
  return /SQLState:\s*([A-Z0-9]{5})/i.exec(message)?.[1]?.toUpperCase()
}

/** undefined: the message carries no SQLSTATE. */
export function kindOfSqlState(message: string): SqlFailureKind | undefined {
  const mysqlCode = /Error code:\s*(\d+)/i.exec(message)?.[1]
  const byCode = mysqlCode === undefined ? undefined : kindByMysqlCode[mysqlCode]
  if (byCode !== undefined) return byCode
  const state = sqlStateIn(message)
  if (state === undefined) return undefined
  return kindByState[state] ?? kindByClass[state.slice(0, 2)] ?? 'permanent'
}
