import { randomUUID } from 'node:crypto'
import { Command, Option } from 'commander'
import { databaseSettings } from '../config/settings.js'
import { ConfigurationError } from '../core/errors.js'
import type { OutboxMeta, SqlDatabase } from '../core/ports.js'
import { checkSchema } from '../store/check-schema.js'
import { readCircuits, type CircuitReport } from '../store/postgres/circuit-report.js'
import { readLogin, readQueueHealth, repairPage, type RepairMode } from '../store/postgres/doctor.js'
import { readMeta } from '../store/postgres/meta.js'
import { callerArn } from './actor.js'
import { circuitText, isOpen } from './circuits.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, type Connection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { databaseNowMs } from './event-view.js'
import { exitCode } from './exit-code.js'
import { describeFailure } from './failure.js'
import { textUpTo } from './option.js'
import { withProgress } from './progress.js'
import { writeJson, type Terminal } from './terminal.js'
import { ageInWords, countOf, fieldLines } from './text.js'
import { packageVersion } from './version.js'

interface DoctorOptions extends ConnectionOptions {
  readonly repair?: true
  readonly reason?: string
  readonly json?: true
}

/** One thing that was looked at. */
interface Check {
  readonly name: string
  readonly ok: boolean
  /** What was found, and of a problem what to do. */
  readonly text: string
}

const longSeconds = 600
/** More than a slow answer explains. */
const maxSkewMs = 10_000
const scanRows = 1000

/** `outbox doctor`. */
export function doctorCommand({ terminal, finish }: CommandContext): Command {
  const command = new Command('doctor')
    .description('Check settings, database, schema, rights, clock, queue and circuits, and say what to do.')
    .option('--repair', 'queue the events that were written while the trigger was disabled')
    .addOption(new Option('--reason <text>', 'why, for the audit; required with --repair').argParser(textUpTo(500)))
    .option(...jsonFlag)
  return addConnectionOptions(command, 60)
    .addHelpText(
      'after',
      examples([
        ['outbox doctor', 'one line for each check; exit code 1 if anything is wrong'],
        ['outbox doctor --repair --reason "trigger was off"', 'queue what nobody would deliver'],
      ]),
    )
    .action(async (options: DoctorOptions) => {
      if (options.repair === true && options.reason === undefined)
        throw new ConfigurationError(
          '--reason',
          '--reason is not set. It must be: why, in 1 to 500 characters; the audit keeps it',
        )
      const checks: Check[] = []
      try {
        await withProgress(terminal, 'checking', () => examine(options, terminal, checks))
      } catch (error) {
        // what comes after it cannot be looked at
        checks.push({ name: nextCheck(checks), ok: false, text: describeFailure(error).line })
      }
      const ok = checks.every((check) => check.ok)
      if (options.json === true) writeJson(terminal, { ok, checks })
      else terminal.out(`${fieldLines(checks.map((check) => [check.name, line(check)])).join('\n')}\n`)
      if (!ok) finish(exitCode.failed)
    })
}

const line = ({ ok, text }: Check): string => `${ok ? 'ok' : 'problem'}: ${text}`

/** In the order in which they are made: what fails with an error is the first one without a result. */
const names = [
  'settings',
  'database',
  'schema',
  'installation',
  'rights',
  'clock',
  'trigger',
  'stuck',
  'leases',
  'orphans',
  'circuits',
  'aside',
  'vacuum',
  'stateless',
]
const nextCheck = (checks: readonly Check[]): string => names[checks.length] ?? 'stateless'

async function examine(options: DoctorOptions, terminal: Terminal, checks: Check[]): Promise<void> {
  const add = (ok: boolean, text: string): void => void checks.push({ name: nextCheck(checks), ok, text })
  const connection = readConnection(options, terminal)
  add(true, `schema "${connection.schema}" of database "${connection.database}" on ${connection.resourceArn}`)
  await withDatabase(connection, async (database) => {
    const sentMs = Date.now()
    const nowMs = await databaseNowMs(database)
    const receivedMs = Date.now()
    add(true, `answered in ${receivedMs - sentMs} ms`)
    const meta = await readMeta(database, connection.schema)
    checkMeta(meta, connection, terminal, add)
    const { user, roles } = await readLogin(database)
    const isOperator = roles.includes('outbox_operator')
    add(
      isOperator,
      isOperator
        ? `user "${user}" is in ${roles.join(', ')}`
        : `user "${user}" is not in outbox_operator; GRANT outbox_operator TO it`,
    )
    const skewMs = Math.round(nowMs - (sentMs + receivedMs) / 2)
    const ahead = `the database is ${Math.abs(skewMs)} ms ${skewMs < 0 ? 'behind' : 'ahead of'} this machine`
    add(
      Math.abs(skewMs) <= maxSkewMs,
      Math.abs(skewMs) <= maxSkewMs
        ? ahead
        : `${ahead}; delivery goes by the database's clock, AWS refuses requests signed 5 minutes off`,
    )
    await checkQueue(database, connection, nowMs, add)
    await checkStateless(database, connection, options, add)
  })
}

function checkMeta(meta: OutboxMeta, { schema }: Connection, terminal: Terminal, add: (ok: boolean, text: string) => void): void {
  const { installation } = meta
  const version = checkSchema(meta, { relayVersion: packageVersion(), installation: installation ?? '', schema })
  add(version.ok, version.ok ? `version ${meta.schemaVersion}` : version.reason)
  const expected = terminal.environment[databaseSettings.installation.env]
  if (installation === null)
    add(false, 'none is recorded, so no second one would be refused: outbox migrate --installation <name>')
  else if (expected !== undefined && expected !== '' && expected !== installation)
    add(false, `"${installation}", but ${databaseSettings.installation.env} is "${expected}"; is this the right database?`)
  else add(true, `"${installation}"`)
}

async function checkQueue(
  database: SqlDatabase,
  { schema }: Connection,
  nowMs: number,
  add: (ok: boolean, text: string) => void,
): Promise<void> {
  const health = await readQueueHealth(database, schema, longSeconds)
  const { triggerOn, stuck, expiredLeases, orphans, oldestTransactionSeconds, deadRows } = health
  const minutes = longSeconds / 60
  add(
    triggerOn,
    triggerOn
      ? 'on'
      : 'off, so new events are not delivered; ALTER TABLE outbox ENABLE TRIGGER outbox_enqueue, then outbox doctor --repair --reason "trigger was off"',
  )
  add(
    stuck === 0,
    stuck === 0
      ? 'no events'
      : `${countOf(stuck, 'event')} due for more than ${minutes} minutes, and no relay serves them; see "Relay silent" in docs/runbook.md`,
  )
  add(
    expiredLeases === 0,
    expiredLeases === 0
      ? 'none is long over'
      : `${countOf(expiredLeases, 'lease')} ran out more than ${minutes} minutes ago, and no relay took the shard up; see "Relay silent" in docs/runbook.md`,
  )
  add(
    orphans === 0,
    orphans === 0
      ? 'no events'
      : `${countOf(orphans, 'event')} deleted by hand before delivery; they fail with EventRowMissing, then outbox discard`,
  )
  checkCircuits(await readCircuits(database, schema), nowMs, add)
  const dead = `${countOf(deadRows, 'dead row')} in the queue`
  const isLong = oldestTransactionSeconds > longSeconds
  add(
    !isLong,
    isLong
      ? `a transaction is open for ${ageInWords(oldestTransactionSeconds)}, so vacuum cannot do its work, and claims become dearer; ${dead}; find it in pg_stat_activity`
      : `no transaction is open for more than ${minutes} minutes; ${dead}`,
  )
}

function checkCircuits(circuits: readonly CircuitReport[], nowMs: number, add: (ok: boolean, text: string) => void): void {
  const texts = (some: readonly CircuitReport[]) =>
    some.map((circuit) => `"${circuit.destination}": ${circuitText(circuit, nowMs)}`).join('; ')
  const open = circuits.filter(isOpen)
  const section = open.some(({ configuration }) => configuration) ? 'Destination misconfigured' : 'Circuit open'
  add(open.length === 0, open.length === 0 ? 'none is open' : `${texts(open)}; see "${section}" in docs/runbook.md`)
  const lost = circuits.filter(({ state }) => state === null)
  add(
    lost.length === 0,
    lost.length === 0
      ? 'no events without a circuit'
      : `${texts(lost)}; INSERT INTO outbox_circuit (destination) VALUES (...) as the owner of the schema`,
  )
}

async function checkStateless(
  database: SqlDatabase,
  connection: Connection,
  options: DoctorOptions,
  add: (ok: boolean, text: string) => void,
): Promise<void> {
  let repaired = 0
  if (options.repair === true) {
    const actor = await callerArn(connection)
    const { reason = '' } = options
    repaired = await countStateless(database, connection.schema, () => ({ actor, reason, request: randomUUID() }))
  }
  const stateless = await countStateless(database, connection.schema, () => 'dry-run')
  const found = `${repaired === 0 ? '' : `${countOf(repaired, 'event')} queued now; `}${countOf(stateless, 'event')} in no state`
  add(
    stateless === 0,
    stateless === 0 ? found : `${found}, written while the trigger was off; outbox doctor --repair --reason ...`,
  )
}

async function countStateless(database: SqlDatabase, schema: string, mode: () => RepairMode): Promise<number> {
  let events = 0
  for (let after: string | null = null, first = true; first || after !== null; first = false) {
    const page: Awaited<ReturnType<typeof repairPage>> = await repairPage(database, schema, { after, scan: scanRows }, mode())
    events += page.stateless
    after = page.nextAfter
  }
  return events
}
