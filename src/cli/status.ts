import { Command } from 'commander'
import type { Backlog } from '../core/backlog.js'
import type { OutboxMeta } from '../core/ports.js'
import { checkSchema, schemaVersion } from '../store/check-schema.js'
import { createOutboxStore } from '../store/postgres/outbox-store.js'
import { readTableSizes, type TableSize } from '../store/postgres/status.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, type Connection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { exitCode } from './exit-code.js'
import { withProgress } from './progress.js'
import { writeJson } from './terminal.js'
import { ageInWords, bytesInWords, countOf, fieldLines } from './text.js'
import { packageVersion } from './version.js'

interface StatusOptions extends ConnectionOptions {
  readonly json?: true
}

/** `outbox status`. */
export function statusCommand({ terminal, finish }: CommandContext): Command {
  const command = new Command('status')
    .description('Show what is waiting and since when, what failed, and who serves the outbox.')
    .option(...jsonFlag)
  return addConnectionOptions(command, 60)
    .addHelpText(
      'after',
      examples([
        ['outbox status', 'the outbox that the environment names'],
        ['outbox status --database orders --schema billing', 'another one'],
        ['outbox status --json | jq .backlog.ageSeconds', 'for a script'],
      ]),
    )
    .action(async (options: StatusOptions) => {
      const connection = readConnection(options, terminal)
      const { backlog, meta, sizes } = await withProgress(terminal, 'reading the backlog', () =>
        withDatabase(connection, async (database) => {
          const store = createOutboxStore(database, connection)
          const meta = await store.meta()
          const backlog = await store.backlog()
          return { meta, backlog, sizes: await readTableSizes(database, connection.schema) }
        }),
      )
      // whoever serves it is right here: only the version is in question
      const installation = meta.installation ?? 'none'
      const check = checkSchema(meta, { relayVersion: packageVersion(), installation, schema: connection.schema })
      const problem = check.ok ? null : check.reason

      if (options.json === true) writeJson(terminal, { schema: connection.schema, ...meta, problem, backlog, sizes })
      else terminal.out(`${statusLines(connection, meta, backlog, sizes).join('\n')}\n`)
      if (problem === null) return
      terminal.err(`outbox: ${problem}\n`)
      finish(exitCode.schema)
    })
}

function statusLines(connection: Connection, meta: OutboxMeta, backlog: Backlog, sizes: readonly TableSize[]): string[] {
  const oldest = backlog.depth === 0 ? '' : `, the oldest for ${ageInWords(backlog.ageSeconds)}`
  const oldestFailed = backlog.failed === 0 ? '' : `, the first ${ageInWords(backlog.oldestFailedSeconds)} ago`
  const version = `${meta.schemaVersion}${meta.schemaVersion === schemaVersion ? '' : ` (this release: ${schemaVersion})`}`
  return fieldLines([
    ['outbox', `schema "${connection.schema}" of database "${connection.database}", version ${version}`],
    ['installation', meta.installation ?? 'none yet'],
    ['backlog', `${countOf(backlog.depth, 'event')} due and not delivered${oldest}`],
    ['  backing off', countOf(backlog.backingOff, 'event')],
    ['  held', countOf(backlog.held, 'event')],
    ['scheduled', `${countOf(backlog.scheduled, 'event')} for later`],
    ['failed', `${countOf(backlog.failed, 'event')}${oldestFailed}`],
    ['blocked keys', String(backlog.blockedKeys)],
    ['leases', `${backlog.leasedShards} of 16 shards`],
    ...sizes.map(({ table, tableBytes, indexBytes, estimatedRows }): [string, string] => {
      const rows = estimatedRows === null ? '' : `, about ${countOf(estimatedRows, 'row')}`
      return [table, `${bytesInWords(tableBytes)}, indexes ${bytesInWords(indexBytes)}${rows}`]
    }),
  ])
}
