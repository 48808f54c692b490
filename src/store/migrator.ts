import type { Clock } from '../core/clock.js'
import type { Deadline } from '../core/deadline.js'
import { SchemaError } from '../core/errors.js'
import type { SqlDatabase } from '../core/ports.js'
import { relayVersion } from '../core/version.js'
import { isOlder } from './check-schema.js'
import { applyFile, migrationTransaction, prepareSchema, type MigrationContext } from './migration-transaction.js'
import { readMeta } from './postgres/meta.js'
import { integerOrNull, boolean, single, text } from './postgres/row.js'
import { createRecord, readFunctions, readInbox, readMigrations, type SchemaFile } from './postgres/schema-files.js'
import { quotedSchema } from './postgres/sql-name.js'

export interface MigrateOptions {
  /** The schema of the outbox; created if it is missing. */
  readonly schema: string
  /** The installation that is to deliver from this outbox; recorded if none is yet. Absent: nothing is recorded or checked. */
  readonly installation?: string | undefined
  /**
   * The installation that `installation` may take the outbox over from. Any other that is recorded is refused, so that two
   * stacks cannot take it from each other by turns. Absent: none.
   */
  readonly takeOverFrom?: string | undefined
  readonly clock: Clock
  /** No attempt starts beyond it. A database that is resuming, or tables that are in use, are waited for until then. */
  readonly deadline: Deadline
}

export interface MigrationReport {
  readonly schema: string
  readonly schemaVersion: number
  /** Names of the files that this call applied, in order; empty if the schema was up to date. */
  readonly applied: readonly string[]
  /** Who delivers from this outbox; null: nobody yet. */
  readonly installation: string | null
}

/**
 * Brings the outbox to this release: migrations that are not applied yet, then functions whose text has changed.
 *
 * Each file is one transaction, together with its record in `outbox_migration`; so a run that was cut anywhere, or whose
 * answers were lost, is simply run again, and two runs at once share the work. Locks on tables are waited for 2 s at a
 * time, so that a busy service is not held up.
 *
 * A schema of a newer release that admits this one is left as it is.
 *
 * Throws `SchemaError`: a migration was altered after it was applied, the schema is too new for this release, another
 * installation has the outbox, or a statement failed (the message names the file). Throws `SqlError` if the database
 * cannot be reached at all.
 *
 * @example
 * const deadline = deadlineAfter(systemClock, 120_000)
 * await migrate(database, { schema: 'public', installation: 'orders', clock: systemClock, deadline })
 */
export async function migrate(database: SqlDatabase, options: MigrateOptions): Promise<MigrationReport> {
  const context: MigrationContext = { ...options, database }
  const migrations = readMigrations()
  const recorded = await readRecord(context)
  refuseAltered(recorded, migrations, options.schema)
  if (recorded.some(({ version }) => version === 1)) await refuseOther(context, options)
  if (recorded.some(({ version }) => version !== null && version > migrations.length)) return leaveNewer(context, options)

  if (recorded.length === 0) {
    await migrationTransaction(context, 'outbox_migration', async (transaction) => {
      await prepareSchema(transaction, context)
      await transaction.execute({ sql: createRecord(options.schema), repeatable: false }, options)
    })
  }
  const checksums = new Map(recorded.map(({ name, checksum }) => [name, checksum]))
  const applied: string[] = []
  for (const file of [...migrations, ...readFunctions()]) {
    if (checksums.get(file.name) === file.checksum) continue
    if (await applyFile(context, file)) applied.push(file.name)
  }
  await recordInstallation(context, options)
  const { schemaVersion, installation } = await readMeta(database, options.schema, options)
  return { schema: options.schema, schemaVersion, applied, installation }
}

/**
 * Creates `outbox_inbox` in a consumer's database, unless it is there.
 *
 * Throws `SchemaError` if a statement failed, `SqlError` if the database cannot be reached at all.
 *
 * @example
 * await migrateInbox(database, { schema: 'public', clock: systemClock, deadline: deadlineAfter(systemClock, 60_000) })
 */
export async function migrateInbox(
  database: SqlDatabase,
  options: Pick<MigrateOptions, 'schema' | 'clock' | 'deadline'>,
): Promise<{ readonly schema: string; readonly applied: readonly string[] }> {
  const context: MigrationContext = { ...options, database }
  const { name, statements } = readInbox()
  const isThere = () => exists(context, 'outbox_inbox')
  if (await isThere()) return { schema: options.schema, applied: [] }
  await migrationTransaction(context, name, async (transaction) => {
    await prepareSchema(transaction, context)
    for (const sql of statements) await transaction.execute({ sql, repeatable: false }, options)
  })
  // without USAGE on the schema PostgreSQL passes it over, and the table was a temporary one
  if (!(await isThere())) {
    throw new SchemaError(`${name}: the database user may not use schema "${options.schema}"; grant it USAGE and CREATE on it`)
  }
  return { schema: options.schema, applied: [name] }
}

interface RecordedFile {
  readonly name: string
  readonly version: number | null
  readonly checksum: string
}

async function exists({ database, schema, deadline }: MigrationContext, table: string): Promise<boolean> {
  const sql = `SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :schema AND c.relname = :name) AS present`
  const { rows } = await database.execute({ sql, parameters: { schema, name: table }, repeatable: true }, { deadline })
  return boolean(single(rows), 'present')
}

async function readRecord(context: MigrationContext): Promise<readonly RecordedFile[]> {
  if (!(await exists(context, 'outbox_migration'))) return []
  const sql = `SELECT name, version, checksum FROM ${quotedSchema(context.schema)}.outbox_migration ORDER BY version NULLS LAST, name`
  const { rows } = await context.database.execute({ sql, repeatable: true }, { deadline: context.deadline })
  return rows.map((row) => ({ name: text(row, 'name'), version: integerOrNull(row, 'version'), checksum: text(row, 'checksum') }))
}

/**
 * A newer release was here. If its schema admits this one, it is left as it is, functions included: a deployment that is
 * rolled back runs this release's migration once more, and must not fail, nor take the newer release's functions away.
 */
async function leaveNewer(context: MigrationContext, options: MigrateOptions): Promise<MigrationReport> {
  const { schema } = context
  const { schemaVersion, minRelayVersion } = await readMeta(context.database, schema, context)
  if (isOlder(relayVersion, minRelayVersion)) {
    throw new SchemaError(
      `schema "${schema}" belongs to a newer release: it needs ${minRelayVersion} or later, this is ${relayVersion}; migrate with that one`,
    )
  }
  await recordInstallation(context, options)
  const { installation } = await readMeta(context.database, schema, context)
  return { schema, schemaVersion, applied: [], installation }
}

function refuseAltered(recorded: readonly RecordedFile[], migrations: readonly SchemaFile[], schema: string): void {
  for (const { name, version, checksum } of recorded) {
    if (version === null || version > migrations.length) continue
    const file = migrations[version - 1]
    if (file?.name !== name || file.checksum !== checksum) {
      throw new SchemaError(
        `migration ${name} was applied to schema "${schema}" with another text (checksum ${checksum.slice(0, 12)}, this release has ` +
          `${file?.name ?? 'none'} with ${file?.checksum.slice(0, 12) ?? 'none'}): an applied migration must not be edited; use the release that applied it, or an empty schema`,
      )
    }
  }
}

async function refuseOther(context: MigrationContext, { installation, takeOverFrom }: MigrateOptions): Promise<void> {
  if (installation === undefined) return
  const found = (await readMeta(context.database, context.schema, context)).installation
  if (found === null || found === installation || found === takeOverFrom) return
  const named = takeOverFrom === undefined ? '' : ` (takeOverFrom is "${takeOverFrom}")`
  throw new SchemaError(
    `the outbox in schema "${context.schema}" is served by installation "${found}", so "${installation}" must not deliver from it: ` +
      `to take it over, set takeOverFrom (--take-over-from) to "${found}"${named}; else use another schema`,
  )
}

async function recordInstallation(context: MigrationContext, options: MigrateOptions): Promise<void> {
  const { installation, takeOverFrom } = options
  if (installation === undefined) return
  await context.database.execute(
    {
      sql: `UPDATE ${quotedSchema(context.schema)}.outbox_meta SET installation = :installation
        WHERE installation IS NULL OR installation = :take_over_from`,
      parameters: { installation, take_over_from: takeOverFrom ?? null },
      repeatable: true,
    },
    context,
  )
  await refuseOther(context, { ...options, takeOverFrom: undefined }) // another one may have come in between
}
