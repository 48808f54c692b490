import { z } from 'zod'
import { ConfigurationError } from '../core/errors.js'
import type { Setting, Settings, SettingValues } from './setting.js'

/**
 * Reads settings from environment variables into a frozen object.
 *
 * @throws ConfigurationError naming the first variable that is missing or wrong, the value seen and the value allowed.
 * @example
 * const settings = parseSettings(relaySettings, process.env)
 */
export function parseSettings<S extends Settings>(
  settings: S,
  environment: Readonly<Record<string, string | undefined>>,
): SettingValues<S> {
  const values = Object.entries(settings).map(([name, setting]) => [name, parseOne(setting, environment[setting.env])] as const)
  return Object.freeze(Object.fromEntries(values)) as SettingValues<S>
}

/**
 * The reverse: environment variables for the values given. What equals its default is left out.
 *
 * @throws ConfigurationError if a value would not be read back.
 */
export function toEnvironment<S extends Settings>(settings: S, values: Partial<SettingValues<S>>): Record<string, string> {
  const environment: Record<string, string> = {}
  for (const [name, setting] of Object.entries(settings)) {
    const value = values[name as keyof S]
    if (value === undefined || value === null) continue
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    parseOne(setting, text)
    const isDefault = setting.default !== undefined && JSON.stringify(value) === JSON.stringify(setting.default)
    if (!isDefault) environment[setting.env] = text
  }
  return environment
}

function parseOne(setting: Setting<unknown>, text: string | undefined): unknown {
  if (text === undefined || text === '') {
    if (setting.default === undefined)
      throw new ConfigurationError(setting.env, `${setting.env} is not set. It must be: ${setting.doc}`)
    return setting.default
  }
  const result = setting.parse.safeParse(text)
  if (result.success) return result.data
  const problems = result.error.issues.map((issue) => {
    const where = issue.path.length === 0 ? '' : `${z.core.toDotPath(issue.path)}: `
    return where + issue.message
  })
  const seen = text.length > 200 ? `${text.slice(0, 200)}...` : text
  throw new ConfigurationError(setting.env, `${setting.env} is wrong: ${problems.join('; ')}. Seen: ${seen}`)
}
