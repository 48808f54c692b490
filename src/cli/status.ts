import { Command } from 'commander'
import type { Backlog } from '../core/backlog.js'
import type { OutboxMeta } from '../core/ports.js'
import { checkSchema, schemaVersion } from '../store/check-schema.js'
import { readCircuits, type CircuitReport } from '../store/postgres/circuit-report.js'
import { createOutboxStore } from '../store/postgres/outbox-store.js'
import { readTableSizes, type TableSize } from '../store/postgres/status.js'
import { circuitText, isOpen } from './circuits.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, type Connection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { databaseNowMs } from './event-view.js'
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
      const { nowMs, backlog, meta, circuits, sizes } = await withProgress(terminal, 'reading the backlog', () =>
        withDatabase(connection, async (database) => {
          const store = createOutboxStore(database, connection)
          const meta = await store.meta()
          const backlog = await store.backlog()
          const circuits = await readCircuits(database, connection.schema)
          const sizes = await readTableSizes(database, connection.schema)
          return { nowMs: await databaseNowMs(database), meta, backlog, circuits, sizes }
        }),
      )
      // whoever serves it is right here: only the version is in question
      const installation = meta.installation ?? 'none'
      const check = checkSchema(meta, { relayVersion: packageVersion(), installation, schema: connection.schema })
      const problem = check.ok ? null : check.reason

      if (options.json === true)
        writeJson(terminal, { nowMs, schema: connection.schema, ...meta, problem, backlog, circuits, sizes })
      else terminal.out(`${statusLines(connection, meta, { nowMs, backlog, circuits, sizes }).join('\n')}\n`)
      if (problem === null) return
      terminal.err(`outbox: ${problem}\n`)
      finish(exitCode.schema)
    })
}

interface Seen {
  readonly nowMs: number
  readonly backlog: Backlog
  readonly circuits: readonly CircuitReport[]
  readonly sizes: readonly TableSize[]
}

function statusLines(connection: Connection, meta: OutboxMeta, { nowMs, backlog, circuits, sizes }: Seen): string[] {
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
    ['circuits', `${circuits.filter(isOpen).length} open`],
    ...circuits.map((circuit): [string, string] => [`  ${circuit.destination}`, circuitText(circuit, nowMs)]),
    ...sizes.map(({ table, tableBytes, indexBytes, estimatedRows }): [string, string] => {
      const rows = estimatedRows === null ? '' : `, about ${countOf(estimatedRows, 'row')}`
      return [table, `${bytesInWords(tableBytes)}, indexes ${bytesInWords(indexBytes)}${rows}`]
    }),
  ])
}
