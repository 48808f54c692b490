import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { destinationsSchema } from '../../config/destinations.js'
import type { Setting, SettingValues } from '../../config/setting.js'
import { cleanupSettings, databaseSettings, migrateSettings, monitorSettings, relaySettings } from '../../config/settings.js'
import type { Destinations } from '../../core/destination.js'
import { ConfigurationError } from '../../core/errors.js'
import { ACCOUNT, REGION, isObject } from '../front/protocol.js'

/** What `--config FILE` may say: destinations, and any setting of the functions but where the database is. */
export interface LocalConfig {
  readonly destinations: Destinations
  readonly relay: Partial<SettingValues<typeof relaySettings>>
  readonly cleanup: Partial<SettingValues<typeof cleanupSettings>>
  readonly monitor: Partial<SettingValues<typeof monitorSettings>>
  readonly migrate: Partial<SettingValues<typeof migrateSettings>>
}

/** Four destinations, of which a row's `destination` chooses one; `bus` is the default. */
const DEFAULT_DESTINATIONS: Destinations = {
  bus: { type: 'eventbridge', eventBusName: 'bus' },
  queue: { type: 'sqs', queueUrl: queueUrl('queue') },
  fifo: { type: 'sqs', queueUrl: queueUrl('fifo.fifo') },
  topic: { type: 'sns', topicArn: topicArn('topic') },
}

const FUNCTIONS = { relay: relaySettings, cleanup: cleanupSettings, monitor: monitorSettings, migrate: migrateSettings } as const
/** In the file `default` says what `defaultDestination` says in the code. */
const FILE_NAMES: Readonly<Record<string, string>> = { defaultDestination: 'default' }

/**
 * Reads the file of `--config`; without one, the default destinations.
 *
 * @throws ConfigurationError naming file, field, value seen and value allowed.
 */
export async function readLocalConfig(file: string | undefined): Promise<LocalConfig> {
  if (file === undefined) return parseLocalConfig({}, '--config')
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (cause) {
    throw new ConfigurationError(
      'config',
      `--config: ${file} cannot be read: ${(cause as NodeJS.ErrnoException).code ?? 'unknown error'}`,
      { cause },
    )
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new ConfigurationError('config', `--config: ${file} is not JSON: ${(cause as Error).message}`, { cause })
  }
  return parseLocalConfig(json, file)
}

/** @throws ConfigurationError as `readLocalConfig` does; `file` is what its message names. */
export function parseLocalConfig(json: unknown, file: string): LocalConfig {
  if (!isObject(json)) throw new ConfigurationError('config', `${file}: must be a JSON object`)
  const { destinations: given, ...rest } = json
  const destinations = given === undefined ? DEFAULT_DESTINATIONS : parseDestinations(given, file)
  const known = allowedNames()
  const unknown = Object.keys(rest).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw new ConfigurationError(unknown, `${file}: ${unknown} is no setting (allowed: ${['destinations', ...known].join(', ')})`)
  }
  const values = given === undefined ? { default: 'bus', ...rest } : rest
  return {
    destinations,
    relay: parseSettings(relaySettings, values, file),
    cleanup: parseSettings(cleanupSettings, values, file),
    monitor: parseSettings(monitorSettings, values, file),
    migrate: parseSettings(migrateSettings, values, file),
  }
}

/** All settings of all functions but the database's, which the stack itself decides, and `destinations`. */
function allowedNames(): readonly string[] {
  const decided = [...Object.keys(databaseSettings), 'destinations', 'userSecrets']
  const names = Object.values(FUNCTIONS).flatMap((settings) => Object.keys(settings).filter((name) => !decided.includes(name)))
  return [...new Set(names)].map((name) => FILE_NAMES[name] ?? name)
}

function parseSettings(
  settings: Readonly<Record<string, Setting<unknown>>>,
  values: Readonly<Record<string, unknown>>,
  file: string,
) {
  const parsed: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(settings)) {
    const field = FILE_NAMES[name] ?? name
    const value = values[field]
    if (value === undefined || value === null || name === 'destinations') continue
    // a setting reads the text of an environment variable
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const result = setting.parse.safeParse(text)
    if (!result.success) throw wrong(file, field, result.error, value)
    parsed[name] = result.data
  }
  return parsed
}

function parseDestinations(given: unknown, file: string): Destinations {
  const result = destinationsSchema.safeParse(isObject(given) ? Object.fromEntries(Object.entries(given).map(spellOut)) : given)
  if (!result.success) throw wrong(file, 'destinations', result.error, given)
  return result.data
}

/** A queue or topic may be given by its name alone. */
function spellOut([name, destination]: [string, unknown]): [string, unknown] {
  if (!isObject(destination)) return [name, destination]
  const { queueUrl: queue, topicArn: topic } = destination
  if (typeof queue === 'string' && /^[A-Za-z0-9_-]+(\.fifo)?$/.test(queue))
    return [name, { ...destination, queueUrl: queueUrl(queue) }]
  if (typeof topic === 'string' && /^[A-Za-z0-9_-]+(\.fifo)?$/.test(topic))
    return [name, { ...destination, topicArn: topicArn(topic) }]
  return [name, destination]
}

function wrong(file: string, field: string, error: z.ZodError, value: unknown): ConfigurationError {
  const [issue] = error.issues
  const path = issue === undefined || issue.path.length === 0 ? field : `${field}.${z.core.toDotPath(issue.path)}`
  const seen = JSON.stringify(value)
  return new ConfigurationError(
    path,
    `${file}: ${path} is wrong: ${issue?.message ?? 'invalid'}. Seen: ${seen.length > 200 ? `${seen.slice(0, 200)}...` : seen}`,
  )
}

function queueUrl(name: string): string {
  return `http://localhost/${ACCOUNT}/${name}`
}

function topicArn(name: string): string {
  return `arn:aws:sns:${REGION}:${ACCOUNT}:${name}`
}
