import { Command, Option } from 'commander'
import { listEvents, type EventStatus, type EventStatusRow } from '../store/postgres/status.js'
import { listBlockedKeys } from '../store/postgres/operate.js'
import { blockedKeyLines } from './blocked.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, type Connection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { databaseNowMs, eventJson, relativeText, sinceMs, statusText } from './event-view.js'
import { integerBetween } from './option.js'
import { withProgress } from './progress.js'
import { writeJson, type Terminal } from './terminal.js'
import { shortened, tableLines } from './text.js'

const statuses = ['pending', 'published', 'failed', 'discarded', 'unknown'] as const satisfies readonly EventStatus[]

interface ListOptions extends ConnectionOptions {
  readonly status?: EventStatus
  readonly eventType?: string
  readonly destination?: string
  readonly key?: string
  readonly blocked?: true
  readonly limit: number
  readonly json?: true
}

/** `outbox list`. */
export function listCommand({ terminal }: CommandContext): Command {
  const command = new Command('list')
    .description('List events, newest first, with their state.')
    .addOption(new Option('--status <status>', 'only events in this state').choices(statuses))
    .option('--event-type <type>', 'only events of this type')
    .option('--destination <name>', 'only events for this destination')
    .option('--key <key>', 'only events of this ordering key')
    .addOption(
      new Option('--blocked', 'ordering keys that a failed event blocks, in place of events').conflicts([
        'status',
        'eventType',
        'destination',
      ]),
    )
    .addOption(new Option('--limit <number>', 'at most so many, 1 to 500').argParser(integerBetween(1, 500)).default(20))
    .option(...jsonFlag)
  return addConnectionOptions(command, 60)
    .addHelpText(
      'after',
      examples([
        ['outbox list', 'the newest 20 events'],
        ['outbox list --status failed', 'what needs an operator'],
        ['outbox list --blocked', 'which keys wait for an operator, and how many events with them'],
        ['outbox list --key customer-7 --status pending', 'what a customer waits for'],
        ['outbox list --event-type OrderCreated --limit 500 --json', 'for a script'],
      ]),
    )
    .action(async (options: ListOptions) => {
      const connection = readConnection(options, terminal)
      if (options.blocked === true) {
        await listBlocked(connection, options, terminal)
        return
      }
      const { nowMs, found } = await withProgress(terminal, 'reading events', () =>
        withDatabase(connection, async (database) => {
          const { status, eventType, destination, key: orderingKey, limit } = options
          // one more than asked for tells whether there are more
          const filter = { status, eventType, destination, orderingKey, limit: limit + 1 }
          const found = await listEvents(database, connection.schema, filter)
          return { found, nowMs: await databaseNowMs(database) }
        }),
      )
      const events = found.slice(0, options.limit)
      const more = found.length > events.length
      if (options.json === true) {
        writeJson(terminal, { nowMs, events: events.map(eventJson), more })
        return
      }
      terminal.out(`${events.length === 0 ? 'no events' : eventLines(events, nowMs).join('\n')}\n`)
      if (more) terminal.err(`outbox: there are more; the newest ${options.limit} are shown (--limit)\n`)
    })
}

async function listBlocked(connection: Connection, { key, limit, json }: ListOptions, terminal: Terminal): Promise<void> {
  const { nowMs, found } = await withProgress(terminal, 'reading events', () =>
    withDatabase(connection, async (database) => {
      const found = await listBlockedKeys(database, connection.schema, { orderingKey: key, limit: limit + 1 })
      return { found, nowMs: await databaseNowMs(database) }
    }),
  )
  const keys = found.slice(0, limit)
  const more = found.length > keys.length
  if (json === true) {
    writeJson(terminal, { nowMs, keys, more })
    return
  }
  terminal.out(`${keys.length === 0 ? 'no blocked keys' : blockedKeyLines(keys, nowMs).join('\n')}\n`)
  if (more) terminal.err(`outbox: there are more; the ${limit} that have waited longest are shown (--limit)\n`)
}

function eventLines(events: readonly EventStatusRow[], nowMs: number): string[] {
  return tableLines<EventStatusRow>(
    [
      { title: 'ID', value: (event) => event.id },
      { title: 'TYPE', value: (event) => shortened(event.eventType, 40) },
      { title: 'KEY', value: (event) => shortened(event.orderingKey ?? '-', 30) },
      { title: 'DESTINATION', value: (event) => shortened(event.destination ?? '-', 30) },
      { title: 'STATUS', value: statusText },
      { title: 'SINCE', value: (event) => relativeText(sinceMs(event), nowMs) },
      { title: 'ATTEMPTS', align: 'right', value: (event) => String(event.attempts) },
      { title: 'ERROR', value: (event) => errorText(event, 60) },
    ],
    events,
  )
}

function errorText({ lastErrorCode, lastError }: EventStatusRow, length: number): string {
  const text = [lastErrorCode, lastError].filter((part) => part !== null).join(': ')
  return shortened(text, length)
}
