import { createRecord, readFunctions, readInbox, readMigrations } from './schema-files.js'
import { quotedSchema } from './sql-name.js'

/**
 * The whole schema as one SQL script, for an empty schema, for teams that let only their own tools change a database. It
 * records what it applies, so that `migrate` takes it from there.
 *
 * @example
 * writeFileSync('outbox.sql', schemaSql({ schema: 'public' })) // psql -v ON_ERROR_STOP=1 -f outbox.sql
 */
export function schemaSql({ schema }: { readonly schema: string }): string {
  const migrations = readMigrations()
  const files = [...migrations, ...readFunctions()].flatMap(({ name, version, checksum, statements }) => [
    `-- ${name}`,
    ...statements.map((statement) => `${statement};`),
    `INSERT INTO outbox_migration (name, version, checksum) VALUES ('${name}', ${version ?? 'NULL'}, '${checksum}');`,
  ])
  return script(schema, [`${createRecord(schema)};`, ...files, `UPDATE outbox_meta SET schema_version = ${migrations.length};`])
}

/** The inbox's table as a SQL script, for a consumer's database. */
export function inboxSql({ schema }: { readonly schema: string }): string {
  return script(
    schema,
    readInbox().statements.map((statement) => `${statement};`),
  )
}

function script(schema: string, statements: readonly string[]): string {
  const quoted = quotedSchema(schema)
  return [
    'BEGIN;',
    ...(schema === 'public' ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoted};`]),
    `SET LOCAL search_path = ${quoted}, pg_temp;`,
    "SET LOCAL lock_timeout = '2s';",
    'SET LOCAL check_function_bodies = off;',
    ...statements,
    'COMMIT;',
    '',
  ].join('\n')
}
