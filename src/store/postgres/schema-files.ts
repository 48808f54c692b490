import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { quotedSchema } from './sql-name.js'
import { splitStatements } from './split-statements.js'

/** One file of the schema: applied in one transaction, statement by statement. */
export interface SchemaFile {
  /** As it is recorded in `outbox_migration`, e.g. `0002-queue.sql` or `functions/outbox_claim.sql`. */
  readonly name: string
  /** The number of a migration; null for a function, which is applied whenever its text changes. */
  readonly version: number | null
  /** SHA-256 of the text, hex. */
  readonly checksum: string
  readonly statements: readonly string[]
}

/** Numbered, in order. Frozen once released. */
export function readMigrations(): readonly SchemaFile[] {
  return read('./migrations/', '').map((file) => ({ ...file, version: Number.parseInt(file.name, 10) }))
}

/** One function a file, with its rights. */
export function readFunctions(): readonly SchemaFile[] {
  return read('./functions/', 'functions/')
}

/** The table of the inbox, for a consumer's database. */
export function readInbox(): SchemaFile {
  return file('inbox.sql', new URL('./inbox.sql', import.meta.url))
}

/**
 * What was applied. Its rows are also the lock between two migrators: each file's transaction begins by writing its row,
 * so that a second one waits there, and then finds the file applied.
 */
export function createRecord(schema: string): string {
  return `CREATE TABLE IF NOT EXISTS ${quotedSchema(schema)}.outbox_migration (
  name       text        NOT NULL PRIMARY KEY,
  version    integer, -- not unique: a second index would fail two migrators at one file, in place of making one wait
  checksum   text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`
}

// Relative to this module: the bundled handler has copies of both folders beside it.
function read(folder: string, prefix: string): readonly SchemaFile[] {
  const url = new URL(folder, import.meta.url)
  return readdirSync(url)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => file(prefix + name, new URL(name, url)))
}

function file(name: string, url: URL): SchemaFile {
  const text = readFileSync(url, 'utf8').replaceAll('\r\n', '\n') // a checkout with CRLF is the same text
  return { name, version: null, checksum: createHash('sha256').update(text).digest('hex'), statements: splitStatements(text) }
}
