import { Argument, Command } from 'commander'
import { createOutboxStore } from '../store/postgres/outbox-store.js'
import { showEvent, type EventStatusRow } from '../store/postgres/status.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { databaseNowMs, eventJson, relativeText, statusText } from './event-view.js'
import { exitCode } from './exit-code.js'
import { eventId } from './option.js'
import { withProgress } from './progress.js'
import { writeJson } from './terminal.js'
import { fieldLines, momentText } from './text.js'

interface ShowOptions extends ConnectionOptions {
  readonly payload?: true
  readonly json?: true
}

/** `outbox show`. */
export function showCommand({ terminal, finish }: CommandContext): Command {
  const command = new Command('show')
    .description('Show one event: state, attempts, last error, receipt; its payload only if asked for.')
    .addArgument(new Argument('<id>', "the event's id").argParser(eventId))
    .option('--payload', 'print the payload too, byte for byte; it may hold personal data')
    .option(...jsonFlag)
  return addConnectionOptions(command, 60)
    .addHelpText(
      'after',
      examples([
        ['outbox show 0197f3a2-7c1e-7d33-9a3b-6f0c8a1b2c3d', 'everything but the payload'],
        ['outbox show 0197f3a2-7c1e-7d33-9a3b-6f0c8a1b2c3d --payload', 'with it'],
      ]),
    )
    .action(async (id: string, options: ShowOptions) => {
      const connection = readConnection(options, terminal)
      const found = await withProgress(terminal, 'reading the event', () =>
        withDatabase(connection, async (database) => {
          const event = await showEvent(database, connection.schema, id)
          if (event === null) return null
          const withPayload = options.payload === true
          const payload = withPayload ? await createOutboxStore(database, connection).readPayload(id) : null
          return { event, payload, nowMs: await databaseNowMs(database) }
        }),
      )
      if (found === null) {
        terminal.err(`outbox: there is no event ${id} in schema "${connection.schema}"; one past its retention is deleted\n`)
        finish(exitCode.absent)
        return
      }
      const { event, payload, nowMs } = found
      if (options.json === true) {
        writeJson(terminal, { nowMs, event: eventJson(event), ...(options.payload === true ? { payload } : {}) })
        return
      }
      terminal.out(`${eventLines(event, nowMs).join('\n')}\n`)
      if (payload !== null) terminal.out(`\n${payload}\n`)
    })
}

function eventLines(event: EventStatusRow, nowMs: number): string[] {
  const moment = (ms: number | null): string | null => (ms === null ? null : `${momentText(ms)} (${relativeText(ms, nowMs)})`)
  const fields: readonly (readonly [name: string, value: string | number | null])[] = [
    ['id', event.id],
    ['type', event.eventType],
    ['status', statusText(event)],
    ['aggregate type', event.aggregateType],
    ['aggregate id', event.aggregateId],
    ['ordering key', event.orderingKey],
    ['destination', event.destination],
    ['attempts', event.attempts],
    ['replays', event.replays],
    ['created', moment(event.createdAtMs)],
    ['due', moment(event.dueAtMs)],
    ['retry', moment(event.retryAtMs)],
    ['failed', moment(event.failedAtMs)],
    [event.status === 'discarded' ? 'discarded' : 'delivered', moment(event.deliveredAtMs)],
    ['message id', event.brokerMessageId],
    ['error code', event.lastErrorCode],
    ['error', event.lastError],
    ['headers', event.headers],
    ['payload', `${event.payloadBytes} bytes`],
    ['shard, seq', event.shard === null ? null : `${event.shard}, ${String(event.seq)}`],
  ]
  return fieldLines(fields.flatMap(([name, value]) => (value === null ? [] : [[name, String(value)] as const])))
}
