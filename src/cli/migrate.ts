import { Command, InvalidArgumentError, Option } from 'commander'
import { parseSettings } from '../config/parse.js'
import { databaseSettings } from '../config/settings.js'
import { userRoles } from '../core/database-user.js'
import { deadlineAfter } from '../core/deadline.js'
import { ConfigurationError } from '../core/errors.js'
import { systemClock } from '../data-api/system-clock.js'
import { createSecretsManagerClient } from '../secrets/client.js'
import { readUsers, type UserSecrets } from '../secrets/user-secrets.js'
import { migrate, migrateInbox } from '../store/migrator.js'
import { inboxSql, schemaSql } from '../store/postgres/schema-sql.js'
import { makeUsers } from '../store/users.js'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { addConnectionOptions, readConnection, readSchema, type Connection, type ConnectionOptions } from './connection.js'
import { withDatabase } from './database.js'
import { withProgress } from './progress.js'
import { writeJson, type Terminal } from './terminal.js'
import { countOf } from './text.js'

interface MigrateOptions extends ConnectionOptions {
  readonly inbox?: true
  readonly print?: true
  readonly installation?: string
  readonly takeOverFrom?: string
  readonly userSecret?: UserSecrets
  readonly json?: true
}

/** `outbox migrate`. */
export function migrateCommand({ terminal }: CommandContext): Command {
  const command = new Command('migrate')
    .description('Bring the outbox (or the inbox) of a database to this release; safe to repeat.')
    .option('--inbox', "create the inbox's table, in a consumer's database, in place of the outbox")
    .addOption(
      new Option('--print', 'print the SQL for an empty schema and change nothing').conflicts(['installation', 'timeout']),
    )
    .option(
      '--installation <name>',
      `installation that is to serve the outbox (${databaseSettings.installation.env}); default: recorded later`,
    )
    .addOption(
      new Option('--take-over-from <name>', 'installation that the outbox is taken over from; it stops serving it').conflicts([
        'inbox',
        'print',
      ]),
    )
    .addOption(
      new Option(
        '--user-secret <function=arn>',
        'make the database user of a function, as its secret says; for each of relay, cleanup, monitor, canary',
      )
        .argParser(addUserSecret)
        .conflicts(['inbox', 'print']),
    )
    .option(...jsonFlag)
  return addConnectionOptions(command, 300)
    .addHelpText(
      'after',
      examples([
        ['outbox migrate --database orders', 'create or update the outbox'],
        ['outbox migrate --schema billing', 'a second outbox, in a schema of its own'],
        ['outbox migrate --user-secret relay=arn:...', "a function's database user too"],
        ['outbox migrate --inbox --database shipping', "the inbox's table, where a consumer keeps its effects"],
        ['outbox migrate --print > outbox.sql', 'for a database that only your own tools may change'],
      ]),
    )
    .action(async (options: MigrateOptions) => {
      if (options.print === true) print(options, terminal)
      else if (options.inbox === true) await runInbox(options, terminal)
      else await run(options, terminal)
    })
}

function print(options: MigrateOptions, terminal: Terminal): void {
  const schema = readSchema(options, terminal)
  const sql = options.inbox === true ? inboxSql({ schema }) : schemaSql({ schema })
  if (options.json === true) writeJson(terminal, { schema, sql })
  else terminal.out(sql)
}

async function run(options: MigrateOptions, terminal: Terminal): Promise<void> {
  const connection = readConnection(options, terminal)
  const installation = readInstallation(options, terminal)
  const { takeOverFrom } = options
  if (takeOverFrom !== undefined && installation === undefined)
    throw new ConfigurationError(
      '--take-over-from',
      `--take-over-from is "${takeOverFrom}", but --installation is not set. It must be: the one that is to serve the outbox`,
    )
  const report = await withProgress(terminal, 'migrating', () =>
    withDatabase(connection, async (database) => {
      const context = {
        database,
        schema: connection.schema,
        clock: systemClock,
        deadline: deadlineAfter(systemClock, connection.timeoutSeconds * 1000),
      }
      const migrated = await migrate(database, { ...context, installation, takeOverFrom })
      const users = await readGivenUsers(options.userSecret ?? {}, connection)
      await makeUsers(context, users)
      return { ...migrated, ...(users.length === 0 ? {} : { users: users.map(({ role, name }) => ({ role, name })) }) }
    }),
  )
  if (options.json === true) {
    writeJson(terminal, report)
    return
  }
  const { schema, schemaVersion, applied } = report
  const done = applied.length === 0 ? 'nothing to do' : `${countOf(applied.length, 'file')} applied`
  terminal.out(`${done}: the outbox in schema "${schema}" of database "${connection.database}" is at version ${schemaVersion}\n`)
  terminal.out(`installation: ${report.installation ?? 'none yet'}\n`)
  for (const { role, name } of report.users ?? []) terminal.out(`database user: ${name} (${role})\n`)
}

async function runInbox(options: MigrateOptions, terminal: Terminal): Promise<void> {
  const connection = readConnection(options, terminal)
  const report = await withProgress(terminal, 'migrating', () =>
    withDatabase(connection, (database) =>
      migrateInbox(database, {
        schema: connection.schema,
        clock: systemClock,
        deadline: deadlineAfter(systemClock, connection.timeoutSeconds * 1000),
      }),
    ),
  )
  if (options.json === true) {
    writeJson(terminal, report)
    return
  }
  const done = report.applied.length === 0 ? 'nothing to do' : 'created'
  terminal.out(`${done}: the inbox is in schema "${report.schema}" of database "${connection.database}"\n`)
}

function addUserSecret(given: string, before: UserSecrets = {}): UserSecrets {
  const [, name, arn = ''] = /^([a-z]+)=(arn:[^:]*:secretsmanager:.+)$/.exec(given) ?? []
  const role = userRoles.find((one) => one === name)
  if (role === undefined || before[role] !== undefined)
    throw new InvalidArgumentError(`It must be <function>=<secret ARN>, once for each of ${userRoles.join(', ')}.`)
  return { ...before, [role]: arn }
}

/** Read in the cluster's own region, as the Data API reads them. */
async function readGivenUsers(secrets: UserSecrets, { resourceArn }: Connection) {
  if (Object.keys(secrets).length === 0) return []
  const region = resourceArn.split(':')[3]
  const client = createSecretsManagerClient(region === undefined || region === '' ? {} : { region })
  try {
    return await readUsers(client, secrets)
  } finally {
    client.destroy()
  }
}

/** Optional here, unlike in a handler: a team may create the tables long before the first stack. */
function readInstallation(options: MigrateOptions, terminal: Terminal): string | undefined {
  const given = options.installation ?? terminal.environment[databaseSettings.installation.env]
  if (given === undefined || given === '') return undefined
  const env = options.installation === undefined ? databaseSettings.installation.env : '--installation'
  return parseSettings({ installation: { ...databaseSettings.installation, env } }, { [env]: given }).installation
}
