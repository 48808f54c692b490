// Records what the schema of this release is made of, so that a test notices when it is changed afterwards. Part of a release:
// `npx tsx scripts/freeze-migrations.ts` (CONTRIBUTING.md).
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { relayVersion } from '../src/core/version.js'
import { readFunctions, readInbox, readMigrations } from '../src/store/postgres/schema-files.js'

const file = fileURLToPath(new URL('../test/unit/released-schema.json', import.meta.url))

/** What databases out there have, and relays out there call. */
export interface ReleasedSchema {
  readonly release: string
  /** File -> SHA-256 of its text. */
  readonly migrations: Readonly<Record<string, string>>
  /** Function -> its parameters and what it returns. */
  readonly functions: Readonly<Record<string, string>>
}

/** What was recorded at the last release. */
export const readReleasedSchema = (): ReleasedSchema => JSON.parse(readFileSync(file, 'utf8')) as ReleasedSchema

/** What the sources are now. */
export function currentSchema(): ReleasedSchema {
  const functions = readFunctions().map(({ name, statements: [create = ''] }) => signature(name, create))
  return {
    release: relayVersion,
    migrations: Object.fromEntries([...readMigrations(), readInbox()].map(({ name, checksum }) => [name, checksum])),
    functions: Object.fromEntries(functions),
  }
}

function signature(name: string, create: string): readonly [string, string] {
  const bare = create.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ')
  const [, own, parts] = / FUNCTION (\w+) ?(\(.*?\) RETURNS .*?) LANGUAGE /.exec(` ${bare}`) ?? []
  if (own === undefined || parts === undefined)
    throw new Error(`${name}: no function with its parameters, RETURNS and LANGUAGE in this order`)
  return [own, parts]
}

/** What was recorded and is not so any more. */
export function changedSince(released: ReleasedSchema, current: ReleasedSchema): readonly string[] {
  const changed = (kind: 'migrations' | 'functions') =>
    Object.entries(released[kind]).flatMap(([name, text]) => (current[kind][name] === text ? [] : [name]))
  return [...changed('migrations'), ...changed('functions')]
}

function main(): void {
  const current = currentSchema()
  const released = readReleasedSchema()
  const isOut = execFileSync('git', ['tag', '--list', `v${released.release}`], { encoding: 'utf8' }).trim() !== ''
  const changed = isOut || released.release !== current.release ? changedSince(released, current) : []
  if (changed.length > 0) {
    console.error(`not recorded: ${released.release} is released, and these were changed since: ${changed.join(', ')}`)
    process.exitCode = 1
    return
  }
  writeFileSync(file, `${JSON.stringify(current, null, 2)}\n`)
  console.log(
    `recorded for ${current.release}: ${Object.keys(current.migrations).length} files, ${Object.keys(current.functions).length} functions`,
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
