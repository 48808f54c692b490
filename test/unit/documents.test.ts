import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { alarmCatalogue, runbook } from '../../lib/monitoring/alarm-catalogue.js'
import { logCatalogue } from '../../src/telemetry/logs.js'
import { metricCatalogue } from '../../src/telemetry/metrics.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')

/** Paths of the repository's files, relative to its root, without what is installed or built. */
function filesIn(folder: string): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (['node_modules', 'dist', 'cdk.out', 'coverage', '.git'].includes(entry.name)) return []
    const file = path.posix.join(folder, entry.name)
    return entry.isDirectory() ? filesIn(file) : [file]
  })
}
const files = filesIn('.')
const documents = files.filter((file) => file.endsWith('.md'))

const withoutBlocks = (text: string): string => text.replace(/^ *```[^]*?^ *```$/gm, '')

/** Names and texts set in backticks, outside of blocks. */
const quoted = (text: string): string[] => [...withoutBlocks(text).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)

/** As GitHub makes the anchors of headings. */
function anchorsOf(document: string): string[] {
  const seen = new Map<string, number>()
  return [...withoutBlocks(read(document)).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = '']) => {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const before = seen.get(slug) ?? 0
    seen.set(slug, before + 1)
    return before === 0 ? slug : `${slug}-${before}`
  })
}

/** The section below a heading of level 2, up to the next one. */
function section(document: string, heading: string): string {
  const text = read(document).split(/^## /m)
  const found = text.find((part) => part.startsWith(`${heading}\n`))
  if (found === undefined) throw new Error(`${document} has no section "${heading}"`)
  return found
}

/** The rows of the only table in a section. */
const tableIn = (text: string): string => [...text.matchAll(/^\|.*\|$/gm)].map(([row]) => row).join('\n')

describe('links in Markdown', () => {
  it.each(documents)('%s links to nothing that is missing', (document) => {
    const missing = [...withoutBlocks(read(document)).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [file = '', anchor] = target.split('#')
        const found = file === '' ? document : path.posix.join(path.posix.dirname(document), file)
        if (!existsSync(path.join(root, found))) return true
        return anchor !== undefined && !anchorsOf(found).includes(anchor)
      })
    expect(missing).toEqual([])
  })
})

describe('names in Markdown', () => {
  const everything = files.filter(
    (file) => /\.(ts|mjs|cjs|js|sql|json|py)$|^\.ci\/run$/.test(file) && !file.includes('package-lock'),
  )
  const sources = everything
    .filter((file) => file !== 'test/unit/documents.test.ts')
    .map(read)
    .join('\n')
  const npmScripts = Object.keys((JSON.parse(read('package.json')) as { readonly scripts: object }).scripts)

  it.each(documents)('%s names only npm scripts and test tiers that exist', (document) => {
    const text = read(document)
    const scripts = [...text.matchAll(/npm run (?:--silent )?([a-z:-]+)/g)].map(([, name = '']) => name)
    expect(scripts.filter((name) => !npmScripts.includes(name))).toEqual([])
    const tiers = [...text.matchAll(/--project ([a-z0-9]+)/g)].map(([, name = '']) => name)
    expect(tiers.filter((name) => !read('vitest.config.ts').includes(`tier('${name}'`))).toEqual([])
  })

  it.each(documents)('%s names only variables, tables and functions that the sources have', (document) => {
    const names = [...read(document).matchAll(/\b(?:OUTBOX_[A-Z_]+[A-Z]|outbox_[a-z_]+[a-z])\b/g)].map(([name]) => name)
    // PostgreSQL itself calls a table's primary key so
    expect(names.filter((name) => !sources.includes(name.replace(/_pkey$/, '')))).toEqual([])
  })

  it.each([
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    ...documents.filter((file) => file.startsWith('docs/adr/')),
  ])('%s names only files that exist', (document) => {
    const paths = quoted(read(document)).filter((code) =>
      /^(src|lib|lambdas|bin|test|bench|docs|scripts|examples|\.ci)\/[\w./-]*$/.test(code),
    )
    expect(paths.filter((name) => !existsSync(path.join(root, name)))).toEqual([])
  })
})

describe('README.md', () => {
  it('shows, on its first screen, the two commands and no other', () => {
    const firstScreen = read('README.md').split('\n').slice(0, 40).join('\n')
    const commands = [...firstScreen.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(([, block = '']) => block.trim().split('\n'))
    expect(commands.map((line) => line.replace(/ +#.*$/, ''))).toEqual(['npm ci && npm run demo', 'npm ci && npm test'])
  })
})

describe('ARCHITECTURE.md', () => {
  it('has every folder of src, and every top-level folder of code, in its code map', () => {
    const codeMap = section('ARCHITECTURE.md', 'Code map')
    const folders = readdirSync(path.join(root, 'src')).map((name) => `src/${name}`)
    for (const folder of [...folders, 'bin', 'lib', 'lambdas', 'test', 'bench', 'scripts', 'examples', 'docs']) {
      if (statSync(path.join(root, folder)).isDirectory()) expect(codeMap, folder).toContain(`\`${folder}/`)
    }
  })

  it('has every folder of src in its import rule', () => {
    const rule = tableIn(section('ARCHITECTURE.md', 'Import rule'))
    for (const name of readdirSync(path.join(root, 'src'))) expect(rule, name).toContain(`\`src/${name}\``)
  })
})

describe('docs/adr', () => {
  const records = documents.filter((file) => file.startsWith('docs/adr/'))

  it('numbers the records without a gap, and the index of docs lists each', () => {
    const numbers = records.map((file) => Number(/(\d{4})-[a-z0-9-]+\.md$/.exec(file)?.[1])).sort((a, b) => a - b)
    expect(numbers).toEqual(numbers.map((_, index) => index + 1))
    for (const file of records) expect(read('docs/README.md')).toContain(`](${path.posix.relative('docs', file)})`)
  })

  it.each(records)('%s says context, decision, consequences and what was rejected', (file) => {
    const headings = [...read(file).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
    expect(headings).toEqual(['Context', 'Decision', 'Consequences', 'Rejected'])
  })
})

describe('docs/runbook.md', () => {
  it('has a section for each alarm, in order, with its first command and the four things to know', () => {
    const headings = [...read(runbook).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
    const alarms = Object.values(alarmCatalogue)
    expect(headings).toEqual([...alarms.map((alarm) => alarm.section), 'Log messages', 'Metrics'])
    for (const alarm of alarms) {
      const text = section(runbook, alarm.section)
      expect(text, alarm.section).toContain(`\n**First command.**\n\n\`\`\`sh\n${alarm.firstCommand}\n\`\`\`\n`)
      for (const part of ['**What it means.**', '**Likely causes.**', '**How to be sure it is over.**'])
        expect(text, alarm.section).toContain(`\n${part}`)
    }
  })

  it('explains every log message in the words of src/telemetry/logs.ts', () => {
    const rows = Object.entries(logCatalogue).map(
      ([id, { level, text, meaning }]) => `| ${level} | \`${text}\` | \`${id}\` | ${meaning} |`,
    )
    expect(tableIn(section('docs/runbook.md', 'Log messages'))).toBe(
      ['| level | message | `logId` | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n'),
    )
  })

  it('explains every metric in the words of src/telemetry/metrics.ts', () => {
    const rows = Object.entries(metricCatalogue).map(
      ([name, { unit, emittedBy, byDestination, meaning }]) =>
        `| \`${name}\` | ${unit} | ${emittedBy} | ${byDestination ? 'yes' : ''} | ${meaning} |`,
    )
    expect(tableIn(section('docs/runbook.md', 'Metrics'))).toBe(
      ['| metric | unit | function | by destination | meaning |', '| --- | --- | --- | --- | --- |', ...rows].join('\n'),
    )
  })

  it('quotes log messages and metrics as they are', () => {
    const prose = read('docs/runbook.md').split(/^## Log messages/m)[0] ?? ''
    const texts = Object.values(logCatalogue).map(({ text }) => text)
    const sentences = quoted(prose).filter((code) => /^[A-Z][A-Za-z]* [A-Za-z ]+$/.test(code))
    expect(sentences.filter((code) => !texts.includes(code))).toEqual([])
    const names = quoted(prose).filter((code) => /^([A-Z][a-z]+)+$/.test(code))
    expect(names.filter((name) => !Object.hasOwn(metricCatalogue, name))).toEqual([])
  })
})
