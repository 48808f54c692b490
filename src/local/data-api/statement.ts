import type { FieldDef, QueryResult } from 'pg'
import { run, type Connection } from './connections.js'
import { statementFault } from './database-error.js'
import { DataApiFault } from './fault.js'
import type { BoundStatement } from './parameters.js'
import type { ResultColumn, TextRow } from './result.js'
import { RESULT_TYPES, userType } from './result-types.js'

/** A call on its way. The caller may get its answer before the database is done: that is what a timeout means. */
export interface Running<T> {
  readonly answer: Promise<T>
  /** Never rejects: what went wrong in the end, if anything did. */
  readonly done: Promise<unknown>
}

export interface StatementTimeout {
  readonly ms: number
  /** `continue`: the caller is told, and the statement goes on. */
  readonly then: 'cancel' | 'continue'
  readonly cancel: (backendId: number) => Promise<void>
}

export interface StatementResult {
  readonly command: string
  readonly updatedRows: number
  readonly columns: readonly ResultColumn[]
  readonly fields: readonly FieldDef[]
  readonly rows: readonly TextRow[]
}

/** Starts one statement; `finish` makes the answer of its result while the connection is still ours. */
export function startStatement<T>(
  connection: Connection,
  { text, values }: BoundStatement,
  timeout: StatementTimeout,
  finish: (result: StatementResult) => T | Promise<T>,
): Running<T> {
  const { client } = connection
  const { processID = 0 } = client as unknown as { readonly processID?: number }
  const timedOut = () => new DataApiFault('StatementTimeoutException', 'The execution of the SQL statement timed out.', processID)
  let hasTimedOut = false
  let cancelled: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      hasTimedOut = true
      if (timeout.then === 'continue') reject(timedOut())
      else cancelled = timeout.cancel(processID)
    }, timeout.ms)
  })
  const query = async () => {
    try {
      return await run(client, text, values)
    } catch (error) {
      throw hasTimedOut ? timedOut() : statementFault(error, values.length > 0)
    } finally {
      clearTimeout(timer)
    }
  }
  const complete = query().then(async (result) => finish(await describe(connection, result)))
  // a cancel that is still on its way must not hit the connection's next statement
  const { answer, done } = running(complete, () => cancelled)
  return { answer: Promise.race([answer, patience]), done }
}

/** A call that is answered when all is done, the clean-up included. */
export function running<T>(complete: Promise<T>, cleanUp?: () => Promise<void> | undefined): Running<T> {
  const outcome = complete.then(
    () => undefined,
    (error: unknown) => error,
  )
  const done = outcome.then(async (error) => {
    await cleanUp?.()
    return error
  })
  return { answer: done.then(() => complete), done }
}

const CHANGES_ROWS = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE'])

async function describe(connection: Connection, result: QueryResult<(string | null)[]>): Promise<StatementResult> {
  const { command, fields, rows } = result
  const types = new Map(RESULT_TYPES)
  const unknown = fields.flatMap(({ dataTypeID }) => (types.has(dataTypeID) ? [] : [dataTypeID]))
  if (unknown.length > 0) {
    const sql = 'SELECT oid::text, typname, (typtype = $2)::text FROM pg_type WHERE oid = ANY ($1::oid[])'
    const found = await run(connection.client, sql, [`{${unknown.join(',')}}`, 'e'])
    for (const [oid, name, isEnum] of found.rows) types.set(Number(oid), userType(name ?? '', isEnum === 'true'))
  }
  return {
    command,
    updatedRows: CHANGES_ROWS.has(command) ? (result.rowCount ?? 0) : 0,
    columns: fields.map(({ name, dataTypeID }) => ({
      name,
      typeId: dataTypeID,
      type: types.get(dataTypeID) ?? userType('unknown', false),
    })),
    fields,
    rows,
  }
}
