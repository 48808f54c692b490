import { Option, type Command } from 'commander'
import { parseSettings } from '../config/parse.js'
import type { Setting } from '../config/setting.js'
import { databaseSettings } from '../config/settings.js'
import type { Terminal } from './terminal.js'
import { integerBetween } from './option.js'

/** Where the outbox is, as the flags and the environment say. */
export interface Connection {
  readonly resourceArn: string
  readonly secretArn: string
  readonly database: string
  readonly schema: string
  /** How long to wait for a cluster that is resuming. */
  readonly timeoutSeconds: number
}

/** What commander parsed of the options that `addConnectionOptions` adds. */
export interface ConnectionOptions {
  readonly clusterArn?: string
  readonly secretArn?: string
  readonly database?: string
  readonly schema?: string
  readonly timeout: number
}

const flags = {
  resourceArn: { name: 'clusterArn', flag: '--cluster-arn' },
  secretArn: { name: 'secretArn', flag: '--secret-arn' },
  database: { name: 'database', flag: '--database' },
  schema: { name: 'schema', flag: '--schema' },
} as const satisfies Record<string, { name: keyof ConnectionOptions; flag: string }>

/** Adds the flags that every command on a database has; `timeoutSeconds` is the default of `--timeout`. */
export function addConnectionOptions(command: Command, timeoutSeconds: number): Command {
  return command
    .option('--cluster-arn <arn>', `Aurora cluster with its Data API on (${databaseSettings.resourceArn.env})`)
    .option('--secret-arn <arn>', `secret with the database user's name and password (${databaseSettings.secretArn.env})`)
    .option('--database <name>', `database that holds the outbox (${databaseSettings.database.env})`)
    .option('--schema <name>', `schema of the outbox tables (${databaseSettings.schema.env}; default: public)`)
    .addOption(
      new Option('--timeout <seconds>', 'how long to wait for a cluster that is resuming')
        .argParser(integerBetween(1, 3600))
        .default(timeoutSeconds),
    )
}

/**
 * The flags, and where one is absent its environment variable.
 *
 * @throws ConfigurationError naming the flag or variable that is missing or wrong
 */
export function readConnection(options: ConnectionOptions, terminal: Terminal): Connection {
  const settings = {
    resourceArn: named(databaseSettings.resourceArn, flags.resourceArn, options),
    secretArn: named(databaseSettings.secretArn, flags.secretArn, options),
    database: named(databaseSettings.database, flags.database, options),
    schema: named(databaseSettings.schema, flags.schema, options),
  }
  return { ...parseSettings(settings, given(options, terminal)), timeoutSeconds: options.timeout }
}

/** The schema alone, for what needs no database. */
export function readSchema(options: ConnectionOptions, terminal: Terminal): string {
  return parseSettings({ schema: named(databaseSettings.schema, flags.schema, options) }, given(options, terminal)).schema
}

/** Every value under the flag's name and under the variable's, as `named` chooses between them. */
function given(options: ConnectionOptions, terminal: Terminal): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    Object.entries(flags).flatMap(([key, { name, flag }]) => {
      const { env } = databaseSettings[key as keyof typeof flags]
      return [
        [flag, options[name]],
        [orFlag(env, flag), terminal.environment[env]],
      ]
    }),
  )
}

/** The same setting under the name by which the person gave it, so that an error speaks of that one. */
function named<Value>(
  setting: Setting<Value>,
  { name, flag }: { readonly name: keyof ConnectionOptions; readonly flag: string },
  options: ConnectionOptions,
): Setting<Value> {
  return { ...setting, env: options[name] === undefined ? orFlag(setting.env, flag) : flag }
}

const orFlag = (env: string, flag: string): string => `${env} (or ${flag})`
