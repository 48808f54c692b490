import { parseArgs } from 'node:util'
import { scenarioNames, scenarios, type ScenarioName } from './scenarios.js'

export interface ChaosOptions {
  /** 0 to 4,294,967,295. Writers and faults follow from it. */
  readonly seed: number
  /** Of writing and faults; healing comes after them. 1 to 86,400. */
  readonly seconds: number
  /** 1 to 64. */
  readonly relays: number
  /** 1 to 64. */
  readonly writers: number
  readonly scenario: ScenarioName
  /** `json`: nothing but the object on stdout. */
  readonly output: 'json' | 'text'
  /** Gets every line that the functions log, and what happened to them. */
  readonly logFile: string | undefined
}

const numbers = {
  seed: { min: 0, max: 4_294_967_295, default: undefined, doc: 'of writers and faults (default: a new one, printed)' },
  seconds: { min: 1, max: 86_400, default: 60, doc: 'of writing and faults; healing comes after them' },
  relays: { min: 1, max: 64, default: 4, doc: 'relay processes at a time, and as many again while passes overlap' },
  writers: { min: 1, max: 64, default: 24, doc: 'services that write at the same time' },
} as const

/**
 * Reads the command line of `npm run chaos`; undefined for `--help`.
 *
 * @param newSeed - the seed if none is given
 * @throws Error naming option, value seen and value allowed.
 * @example
 * readChaosOptions(['--seed', '7', '--seconds', '20'], 1)
 */
export function readChaosOptions(args: readonly string[], newSeed: number): ChaosOptions | undefined {
  const string = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: string,
      seconds: string,
      relays: string,
      writers: string,
      scenario: string,
      log: string,
      json: flag,
      help: flag,
    },
  })
  if (values.help === true) return undefined
  const number = (name: keyof typeof numbers): number => {
    const { min, max, default: otherwise = newSeed } = numbers[name]
    const given = values[name]
    if (given === undefined) return otherwise
    const value = /^\d+$/.test(given) ? Number(given) : Number.NaN
    if (!(value >= min && value <= max)) throw new Error(`--${name} is "${given}"; allowed: a whole number from ${min} to ${max}`)
    return value
  }
  const scenario = scenarioNames.find((name) => name === (values.scenario ?? 'mixed'))
  if (scenario === undefined) throw new Error(`--scenario is "${values.scenario}"; allowed: ${scenarioNames.join(', ')}`)
  return {
    seed: number('seed'),
    seconds: number('seconds'),
    relays: number('relays'),
    writers: number('writers'),
    scenario,
    output: values.json === true ? 'json' : 'text',
    logFile: values.log,
  }
}

export function usage(): string {
  const line = (name: string, doc: string) => `  --${name.padEnd(12)} ${doc}`
  return [
    'npm run chaos -- [options]',
    ...Object.entries(numbers).map(([name, one]) =>
      line(name, one.default === undefined ? one.doc : `${one.doc} (default ${one.default})`),
    ),
    line('scenario', 'one of:'),
    ...Object.entries(scenarios).map(([name, { doc }]) => `      ${name.padEnd(13)} ${doc}`),
    line('log', 'a file for every line that the functions log, for what happened to them, and for failures of writers'),
    line('json', 'nothing but the result on stdout'),
  ].join('\n')
}
