import { randomUUID } from 'node:crypto'
import { Command, Option } from 'commander'
import { ConfigurationError, SqlError } from '../core/errors.js'
import type { SqlExecutor } from '../core/ports.js'
import { systemClock } from '../data-api/system-clock.js'
import { carryOut, previewAct, type ActFilter, type OperatorAction } from '../store/postgres/operate.js'
import { callerArn } from './actor.js'
import { runBatches } from './batches.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, type Connection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { databaseNowMs } from './event-view.js'
import { exitCode } from './exit-code.js'
import { eventId, integerBetween, moment, textUpTo } from './option.js'
import { withProgress } from './progress.js'
import { writeJson, type Terminal } from './terminal.js'
import { countOf } from './text.js'

interface ActOptions extends ConnectionOptions {
  readonly id?: readonly string[]
  readonly key?: string
  readonly eventType?: string
  readonly errorCode?: string
  readonly destination?: string
  readonly from?: number
  readonly until?: number
  readonly all?: true
  readonly dryRun?: true
  readonly limit?: number
  readonly rate?: number
  readonly reason?: string
  readonly yes?: true
  readonly json?: true
}

/** One operator's act as a command. */
export interface ActCommand {
  readonly action: OperatorAction
  readonly description: string
  /** What the filter chooses among, e.g. `failed`. */
  readonly among: string
  /** E.g. `redriven`. */
  readonly done: string
  readonly examples: readonly (readonly [command: string, meaning: string])[]
}

/** What a run did, as `--json` writes it. */
interface ActResult {
  readonly events: number
  readonly batches: number
  readonly complete: boolean
  /** The request whose reply was lost, so that only `outbox_audit` knows whether it was carried out. */
  readonly unresolved: string | null
}

const filterFlags = ['id', 'key', 'eventType', 'errorCode', 'destination', 'from', 'until'] as const

/** `outbox redrive`, `discard`, `release` or `replay`. */
export function actCommand(act: ActCommand, { terminal, finish }: CommandContext): Command {
  const isReplay = act.action === 'replay'
  const command = new Command(act.action)
    .description(act.description)
    .addOption(new Option('--id <id>', 'only this event; may be given several times').argParser(addId))
    .option('--key <key>', 'only events of this ordering key')
    .option('--type, --event-type <type>', 'only events of this type')
  if (!isReplay) command.option('--error-code <code>', 'only events that failed with this code')
  command
    .option('--destination <name>', `only events that ${isReplay ? 'went to' : 'failed at'} this destination`)
    .addOption(new Option('--from <moment>', `only those ${act.among} at this moment or later`).argParser(moment))
    .addOption(new Option('--until <moment>', `only those ${act.among} before this moment`).argParser(moment))
    .addOption(new Option('--all', `every ${act.among} event`).conflicts([...filterFlags]))
    .option('--dry-run', 'tell how many, with the ids of the first ten, and change nothing')
    .addOption(new Option('--limit <number>', 'at most so many, the oldest first').argParser(integerBetween(1, 10_000_000)))
    .addOption(new Option('--rate <number>', 'events a second, at most').argParser(integerBetween(1, 100_000)))
    .addOption(new Option('--reason <text>', 'why, for the audit; required').argParser(textUpTo(500)))
  if (act.action === 'discard') command.option('--yes', 'yes, these events are never to be delivered')
  if (isReplay) command.option('--yes', 'yes, events with an ordering key too, out of their order')
  command.option(...jsonFlag)
  return addConnectionOptions(command, 60)
    .addHelpText('after', examples(act.examples))
    .action(async (options: ActOptions) => {
      const connection = readConnection(options, terminal)
      const filter = readFilter(act, options)
      if (options.dryRun === true) await preview(act, filter, { options, connection, terminal })
      else if ((await run(act, filter, { options, connection, terminal })) === 'stopped') finish(exitCode.interrupted)
    })
}

interface Call {
  readonly options: ActOptions
  readonly connection: Connection
  readonly terminal: Terminal
}

async function preview({ action, among }: ActCommand, filter: ActFilter, { options, connection, terminal }: Call): Promise<void> {
  const { events, keyed, sample } = await withProgress(terminal, 'reading events', () =>
    withDatabase(connection, (database) => previewAct(database, connection.schema, action, filter, options.limit ?? 2 ** 31 - 1)),
  )
  if (options.json === true) {
    writeJson(terminal, { action, dryRun: true, filter, events, keyed, sample })
    return
  }
  const withKey = keyed === 0 ? '' : `, ${keyed} with an ordering key`
  terminal.out(`${action} would take ${countOf(events, `${among} event`)}${withKey}\n`)
  for (const id of sample) terminal.out(`${id}\n`)
  if (events > sample.length) terminal.out(`and ${events - sample.length} more\n`)
}

async function run(act: ActCommand, filter: ActFilter, call: Call): Promise<'done' | 'stopped'> {
  const { options, connection, terminal } = call
  const { action, done } = act
  const reason = readReason(act, options)
  const progress = { events: 0, batches: 0, request: '' }
  const report = (actor: string, { complete, unresolved }: Pick<ActResult, 'complete' | 'unresolved'>): void => {
    const { events, batches } = progress
    if (options.json === true) {
      writeJson(terminal, { action, dryRun: false, filter, actor, reason, events, batches, complete, unresolved })
      return
    }
    terminal.out(`${events === 0 ? 'no' : events} event${events === 1 ? '' : 's'} ${done}${complete ? '' : ' so far'}\n`)
    if (unresolved !== null)
      terminal.out(`one more batch may have been carried out: if so, outbox_audit has a row with request ${unresolved}\n`)
  }

  return withDatabase(connection, async (database) => {
    const actor = await callerArn(connection)
    const chosen = await boundFilter(act, filter, { ...call, database })
    try {
      const carryOutBatch = (maxRows: number): Promise<number> => {
        progress.request = randomUUID()
        return carryOut(database, connection.schema, {
          action,
          filter: chosen,
          maxRows,
          actor,
          reason,
          request: progress.request,
        })
      }
      const ended = await withProgress(terminal, action, () =>
        runBatches(carryOutBatch, {
          limit: options.limit,
          rate: options.rate,
          clock: systemClock,
          stop: terminal.stopSignal(),
          onBatch: (events) => {
            if (events > progress.events) progress.batches += 1
            progress.events = events
          },
        }),
      )
      report(actor, { complete: ended === 'done', unresolved: null })
      return ended
    } catch (error) {
      const isUnresolved = error instanceof SqlError && error.kind === 'ambiguous'
      report(actor, { complete: false, unresolved: isUnresolved ? progress.request : null })
      throw error
    }
  })
}

/**
 * The filter, and what keeps the run from chasing its own tail: an event that fails, or is published, again while the command runs
 * is not taken again. Without --yes a replay takes no event with an ordering key, not even one published at this moment.
 */
async function boundFilter(
  { action }: ActCommand,
  filter: ActFilter,
  { options, connection, database }: Call & { readonly database: SqlExecutor },
): Promise<ActFilter> {
  // the millisecond under way is over for every event that is there already
  const untilMs = Math.min(filter.untilMs ?? Infinity, (await databaseNowMs(database)) + 1)
  if (action !== 'replay' || options.yes === true) return { ...filter, untilMs }
  const { events } = await previewAct(database, connection.schema, action, { ...filter, untilMs, keyed: true }, 1)
  if (events === 0) return { ...filter, untilMs, keyed: false }
  throw new ConfigurationError(
    '--yes',
    '--yes is not set. It must be, because some of these events have an ordering key, and a replay brings them after newer ones of it',
  )
}

function readFilter({ action, among }: ActCommand, options: ActOptions): ActFilter {
  const { id: ids, key: orderingKey, eventType, errorCode, destination, from: fromMs, until: untilMs } = options
  if (options.all === undefined && filterFlags.every((flag) => options[flag] === undefined)) {
    const errorCodeFlag = action === 'replay' ? '' : '--error-code, '
    throw new ConfigurationError(
      '--all',
      `${action} has no filter. It must be at least one of --id, --key, --event-type, ${errorCodeFlag}--destination, --from, --until; or --all for every ${among} event`,
    )
  }
  if (fromMs !== undefined && untilMs !== undefined && fromMs >= untilMs)
    throw new ConfigurationError(
      '--until',
      `--until is wrong: must be later than --from. Seen: ${new Date(untilMs).toISOString()}`,
    )
  return { ids, eventType, orderingKey, destination, errorCode, fromMs, untilMs }
}

function readReason({ action }: ActCommand, { reason, yes }: ActOptions): string {
  if (reason === undefined)
    throw new ConfigurationError('--reason', '--reason is not set. It must be: why, in 1 to 500 characters; the audit keeps it')
  if (action === 'discard' && yes === undefined)
    throw new ConfigurationError('--yes', '--yes is not set. It must be, because a discarded event is never delivered')
  return reason
}

function addId(given: string, before: readonly string[] = []): readonly string[] {
  return [...before, eventId(given)]
}
