// Writes docs/configuration.md from the settings catalogue. `npx tsx scripts/settings-table.ts`
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Setting, Settings } from '../src/config/setting.js'
import {
  canarySettings,
  cleanupSettings,
  databaseSettings,
  migrateSettings,
  monitorSettings,
  relaySettings,
} from '../src/config/settings.js'
import { stackTables } from './stack-table.js'

const file = fileURLToPath(new URL('../docs/configuration.md', import.meta.url))

/** What docs/configuration.md should say. */
export function settingsTable(): string {
  return [
    '# Configuration',
    '',
    'Written by `npx tsx scripts/settings-table.ts`, from what checks a configuration and the settings.',
    '',
    '## The stack',
    '',
    'One JSON file, named in `cdk.json` (`context.config`) or by `-c config=FILE`; `examples/config` has some to begin with. A mistake',
    'ends synthesis with one line that names the property, the value seen and the value allowed. A dot leads into an object:',
    '`alarms.email` is `{"alarms": {"email": ...}}`.',
    '',
    ...stackTables(),
    '',
    '## The handlers',
    '',
    'Every handler reads its settings from environment variables, once, and refuses to run with a wrong one. The stack sets them from',
    'the properties above; those of `relay` have the names, units and ranges of this table.',
    '',
    '### All handlers: where the outbox is',
    '',
    ...table(databaseSettings),
    '',
    '### relay',
    '',
    ...table(own(relaySettings)),
    '',
    '### cleanup',
    '',
    ...table(own(cleanupSettings)),
    '',
    '### monitor',
    '',
    ...(Object.keys(own(monitorSettings)).length === 0 ? ['Nothing of its own.'] : table(own(monitorSettings))),
    '',
    '### canary',
    '',
    ...table(own(canarySettings)),
    '',
    '### migrate',
    '',
    ...table(own(migrateSettings)),
    '',
  ].join('\n')
}

const own = (settings: Settings): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => !Object.hasOwn(databaseSettings, name)))

function table(settings: Settings): readonly string[] {
  return [
    '| setting | variable | default | range | unit | meaning |',
    '| --- | --- | --- | --- | --- | --- |',
    ...Object.entries(settings).map(([name, setting]) => {
      const cells = [`\`${name}\``, `\`${setting.env}\``, defaultOf(setting), rangeOf(setting), setting.unit, setting.doc]
      return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
    }),
  ]
}

function defaultOf({ default: value }: Setting<unknown>): string {
  if (value === undefined) return 'required'
  if (value === null) return 'none'
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}

/** The catalogue says a number's range only in its parser: it is found there by asking. */
function rangeOf({ parse, default: value }: Setting<unknown>): string {
  const accepts = (number: number): boolean => parse.safeParse(String(number)).success
  const problem = (text: string): string | undefined => parse.safeParse(text).error?.issues[0]?.message
  const bound = (text: string): string | undefined => /-?\d+$/.exec(problem(text) ?? '')?.[0]
  if (typeof value !== 'number' && !accepts(3600)) return ''
  const [min, max] = [bound('-999999999999'), bound('999999999999')]
  return min === undefined || max === undefined ? '' : `${min} to ${max}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = settingsTable()
  const changed = !existsSync(file) || readFileSync(file, 'utf8') !== text
  if (changed) writeFileSync(file, text)
  console.log(`docs/configuration.md ${changed ? 'written' : 'is up to date'}`)
}
