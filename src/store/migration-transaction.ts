import type { Clock } from '../core/clock.js'
import type { Deadline } from '../core/deadline.js'
import { SchemaError, SqlError, type SqlFailureKind } from '../core/errors.js'
import type { SqlDatabase, SqlTransaction } from '../core/ports.js'
import { boolean, single } from './postgres/row.js'
import type { SchemaFile } from './postgres/schema-files.js'
import { quotedSchema } from './postgres/sql-name.js'

export interface MigrationContext {
  readonly database: SqlDatabase
  readonly schema: string
  readonly clock: Clock
  readonly deadline: Deadline
}

/** What passes by itself. After a commit whose answer was lost, the next attempt finds the file's record, or does not. */
const passing: readonly SqlFailureKind[] = ['not-executed', 'rolled-back', 'transaction-lost', 'ambiguous']

/**
 * Runs `work` in a transaction whose names resolve in the schema, again and again until it succeeds, fails for good, or the
 * deadline is near. `commitUnknown`: an earlier attempt may have been committed.
 */
export async function migrationTransaction<Result>(
  { database, schema, clock, deadline }: MigrationContext,
  name: string,
  work: (transaction: SqlTransaction, commitUnknown: boolean) => Promise<Result>,
): Promise<Result> {
  let commitUnknown = false
  let telling: SqlError | undefined
  for (let waitMs = 250; ; waitMs = Math.min(2 * waitMs, 4_000)) {
    try {
      const transaction = await database.begin({ deadline })
      let committing = false
      try {
        // bodies unchecked, so that functions may name each other whatever their order
        await transaction.execute(
          {
            sql: `SELECT set_config('search_path', :path, true) AS path, set_config('lock_timeout', '2s', true) AS lock_timeout,
              set_config('check_function_bodies', 'off', true) AS check_bodies`,
            parameters: { path: `${quotedSchema(schema)}, pg_temp` },
            repeatable: true,
          },
          { deadline },
        )
        const result = await work(transaction, commitUnknown)
        committing = true
        await transaction.commit({ deadline })
        return result
      } catch (error) {
        await transaction.rollback()
        commitUnknown ||= committing
        throw error
      }
    } catch (error) {
      if (!(error instanceof SqlError)) throw error
      if (!passing.includes(error.kind)) throw described(name, schema, error)
      // what the database itself said tells more than that the time was up
      if (telling === undefined || error.sqlState !== undefined) telling = error
      if (deadline.remainingMs() <= waitMs) {
        const reason = `not applied to schema "${schema}" in the time given; last failure: ${telling.message}`
        throw new SchemaError(`${name}: ${reason}`, { cause: telling })
      }
      await clock.sleep(waitMs)
    }
  }
}

/** Creates the schema, unless it is there. Others that are about to do the same wait until the transaction ends. */
export async function prepareSchema(transaction: SqlTransaction, { schema, deadline }: MigrationContext): Promise<void> {
  const run = (sql: string) => transaction.execute({ sql, repeatable: false }, { deadline })
  // class 1869968482 is the outbox's; its other numbers are key stripes (0 and up) and repair (-1)
  await run('SELECT 1 AS locked FROM pg_advisory_xact_lock(1869968482, -2)')
  const { rows } = await run(`SELECT to_regnamespace('${quotedSchema(schema)}') IS NOT NULL AS present`)
  if (!boolean(single(rows), 'present')) await run(`CREATE SCHEMA ${quotedSchema(schema)}`)
}

/** Applies one file, unless its record says that this was done; answers whether this call did it. */
export async function applyFile(context: MigrationContext, file: SchemaFile): Promise<boolean> {
  const schema = quotedSchema(context.schema)
  const options = { deadline: context.deadline }
  return migrationTransaction(context, file.name, async (transaction, commitUnknown) => {
    // Not repeatable: a repeat would find its own row. Another migrator that is at the same file makes this wait.
    const { updatedRows } = await transaction.execute(
      {
        sql: `INSERT INTO ${schema}.outbox_migration AS m (name, version, checksum) VALUES (:name, CAST(:version AS integer), :checksum)
          ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = now()
          WHERE m.version IS NULL AND m.checksum <> excluded.checksum`,
        parameters: { name: file.name, version: file.version, checksum: file.checksum },
        repeatable: false,
      },
      options,
    )
    if (updatedRows === 0) return commitUnknown
    for (const sql of file.statements) await transaction.execute({ sql, repeatable: false }, options)
    if (file.version !== null) {
      const sql = `UPDATE ${schema}.outbox_meta SET schema_version = CAST(:version AS integer)`
      await transaction.execute({ sql, parameters: { version: file.version }, repeatable: false }, options)
    }
    return true
  })
}

function described(name: string, schema: string, error: SqlError): SchemaError {
  const advice =
    error.sqlState === '42P07'
      ? ' (this schema has tables of that name that are not ours: choose another schema for the outbox)'
      : ''
  return new SchemaError(`${name}: could not be applied to schema "${schema}": ${error.message}${advice}`, { cause: error })
}
