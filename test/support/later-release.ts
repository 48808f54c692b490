import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { schemaVersion } from '../../src/store/check-schema.js'

/** A release that comes after this one, built from these sources with the changes below. */
export interface LaterRelease {
  readonly version: string
  readonly schemaVersion: number
  /** The bundle of a handler of it. */
  handler(name: 'relay' | 'migrate'): string
  remove(): Promise<void>
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const version = '0.2.0'
const migration = `${String(schemaVersion + 1).padStart(4, '0')}-taken-by.sql`

/**
 * What it changes, as `docs/deploy.md` allows it: a column; a function whose signature and answer are others, under a new name;
 * a relay that calls it; a function with another text and the same signature.
 */
const changes: readonly (readonly [file: string, from: string | RegExp, to: string])[] = [
  ['src/core/version.ts', /'\d+\.\d+\.\d+'/, `'${version}'`],
  ['src/store/check-schema.ts', `schemaVersion = ${schemaVersion}`, `schemaVersion = ${schemaVersion + 1}`],
  ['src/store/postgres/outbox-store.ts', 'outbox_claim(', `outbox_claim_2('${version}', `],
  ['src/store/postgres/functions/outbox_settle.sql', /\nEND \$\$;/, '\n  -- as before\nEND $$;'],
]
const claim2: readonly (readonly [from: string | RegExp, to: string])[] = [
  [/FUNCTION outbox_claim\(/, 'FUNCTION outbox_claim_2(p_release text, '],
  ['REVOKE ALL ON FUNCTION outbox_claim FROM', 'REVOKE ALL ON FUNCTION outbox_claim_2 FROM'],
  ['GRANT EXECUTE ON FUNCTION outbox_claim TO', 'GRANT EXECUTE ON FUNCTION outbox_claim_2 TO'],
  ['RETURNS TABLE (id text', 'RETURNS TABLE (taken_by text, id text'],
  [
    /\n {2}RETURN QUERY\s+SELECT /,
    '\n  UPDATE outbox_delivery SET taken_by = p_release WHERE event_id = ANY (v_ids);\n  RETURN QUERY SELECT d.taken_by, ',
  ],
]

/** Builds it into a temporary directory. Whoever does calls `remove`. */
export async function buildLaterRelease(): Promise<LaterRelease> {
  const directory = await mkdtemp(join(tmpdir(), 'outbox-later-release-'))
  const remove = () => rm(directory, { recursive: true, force: true })
  try {
    await build(directory)
  } catch (error) {
    await remove()
    throw error
  }
  return {
    version,
    schemaVersion: schemaVersion + 1,
    handler: (name) => join(directory, 'dist/lambdas', name, 'index.mjs'),
    remove,
  }
}

async function build(directory: string): Promise<void> {
  const at = (...path: readonly string[]) => join(directory, ...path)
  for (const source of ['src', 'lambdas', 'lib', 'bin', 'package.json', 'scripts/build.mjs'])
    await cp(join(root, source), at(source), { recursive: true })
  await symlink(join(root, 'node_modules'), at('node_modules'))

  for (const [file, from, to] of changes) await writeFile(at(file), changed(file, await readFile(at(file), 'utf8'), from, to))
  const functions = at('src/store/postgres/functions')
  let claim = await readFile(join(functions, 'outbox_claim.sql'), 'utf8')
  for (const [from, to] of claim2) claim = changed('outbox_claim.sql', claim, from, to)
  await writeFile(join(functions, 'outbox_claim_2.sql'), claim)
  const column = 'ALTER TABLE outbox_delivery ADD COLUMN taken_by text;\n'
  await writeFile(at('src/store/postgres/migrations', migration), column)

  await promisify(execFile)(process.execPath, [at('scripts/build.mjs')])
}

function changed(file: string, text: string, from: string | RegExp, to: string): string {
  const parts = text.split(from)
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} of ${String(from)}, not one: bring test/support/later-release.ts up to date`)
  return parts.join(to)
}
