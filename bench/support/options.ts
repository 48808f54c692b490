import { parseArgs } from 'node:util'

/** An option of a bench: a number, or a list of numbers separated by commas. */
export interface OptionDefinition {
  readonly default: number | readonly number[]
  readonly doc: string
  /** Smallest value allowed. Default 0. */
  readonly min?: number
}

export type OptionDefinitions = Readonly<Record<string, OptionDefinition>>

export type OptionValues<D extends OptionDefinitions> = {
  readonly [Name in keyof D]: D[Name]['default'] extends number ? number : readonly number[]
}

export type ParsedOptions<D extends OptionDefinitions> =
  | { readonly kind: 'run'; readonly values: OptionValues<D>; readonly output: 'json' | 'text' }
  | { readonly kind: 'help'; readonly text: string }

/**
 * Reads a bench's command line: `--name value`, `--json`, `--help`.
 *
 * @throws Error naming option, value seen and value allowed.
 */
export function readOptions<D extends OptionDefinitions>(
  bench: string,
  definitions: D,
  args: readonly string[],
): ParsedOptions<D> {
  const strings = Object.fromEntries(Object.keys(definitions).map((name) => [name, { type: 'string' as const }]))
  const flags = { json: { type: 'boolean' as const }, help: { type: 'boolean' as const } }
  const { values } = parseArgs({ args: [...args], options: { ...strings, ...flags }, strict: true })
  if (values.help === true) return { kind: 'help', text: usage(bench, definitions) }
  const given = values as Readonly<Record<string, string | undefined>>
  const parsed = Object.entries(definitions).map(([name, definition]) => [name, valueOf(name, definition, given[name])])
  return {
    kind: 'run',
    values: Object.fromEntries(parsed) as OptionValues<D>,
    output: values.json === true ? 'json' : 'text',
  }
}

function valueOf(name: string, definition: OptionDefinition, given: string | undefined): number | readonly number[] {
  if (given === undefined) return definition.default
  const { min = 0 } = definition
  const isList = typeof definition.default !== 'number'
  const numbers = (isList ? given.split(',') : [given]).map((text) => (text.trim() === '' ? Number.NaN : Number(text)))
  if (numbers.some((value) => !Number.isFinite(value) || value < min)) {
    const allowed = isList ? 'numbers, separated by commas, each' : 'a number,'
    throw new Error(`--${name} is "${given}"; allowed: ${allowed} at least ${min}`)
  }
  return isList ? numbers : numbers[0]!
}

function usage(bench: string, definitions: OptionDefinitions): string {
  const lines = Object.entries(definitions).map(([name, { default: value, doc }]) => {
    const shown = typeof value === 'number' ? String(value) : value.join(',')
    return `  --${name.padEnd(14)} ${doc}${shown === '' ? '' : ` (default ${shown})`}`
  })
  return [`npx tsx bench/${bench}.ts [options]`, ...lines, '  --json           one JSON object on stdout'].join('\n')
}
