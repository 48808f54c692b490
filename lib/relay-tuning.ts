import { relaySettings } from '../src/config/settings.js'
import type { SettingValues } from '../src/config/setting.js'
import { ConfigurationError } from '../src/core/errors.js'
import { show, whatItMustBe } from './problem.js'

/** The relay's numbers that a stack may change: everything of the catalogue that does not say where or what. */
export const tuningNames = [
  'passSeconds',
  'leaseSeconds',
  'claimRows',
  'claimBytes',
  'keyRows',
  'maxShards',
  'maxAttempts',
  'retryBaseMs',
  'retryCapMs',
  'requestTimeoutMs',
  'requestsInFlight',
  'idleWaitMs',
  'releasePerSecond',
] as const satisfies readonly (keyof typeof relaySettings)[]

type TuningName = (typeof tuningNames)[number]

/** By the names of docs/configuration.md, which gives unit, range and default of each. */
export type RelayTuning = Partial<Pick<SettingValues<typeof relaySettings>, TuningName>>

/** Every number, the defaults filled in. */
export type ResolvedTuning = Readonly<Record<TuningName, number>>

/** @throws ConfigurationError naming the first that is outside its range. */
export function resolveTuning(tuning: RelayTuning): ResolvedTuning {
  const entries = tuningNames.map((name) => {
    const setting = relaySettings[name]
    const value = tuning[name] ?? setting.default
    const result = setting.parse.safeParse(String(value))
    if (!result.success) {
      const [issue] = result.error.issues
      const problem = issue === undefined ? 'is wrong' : whatItMustBe(issue)
      throw new ConfigurationError(`relay.${name}`, `relay.${name} ${problem}. Seen: ${show(value)} (${setting.unit})`)
    }
    return [name, result.data] as const
  })
  return Object.fromEntries(entries) as ResolvedTuning
}
