// Writes THIRD-PARTY.md: the packages inside the bundled handlers, with their licences. `node scripts/third-party.mjs`
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const file = path.join(root, 'THIRD-PARTY.md')

/** @returns {Promise<string>} what THIRD-PARTY.md should say, by what the handlers are made of now */
export async function thirdParty() {
  const { inputs } = await build()
  const folders = new Set(inputs.flatMap((input) => input.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/)?.[0] ?? []))
  const packages = [...folders]
    .map((folder) => ({ folder, ...JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8')) }))
    .sort((one, other) => (one.name + one.version < other.name + other.version ? -1 : 1))
  const unnamed = packages.filter(({ license }) => typeof license !== 'string')
  if (unnamed.length > 0) throw new Error(`no licence in package.json of ${unnamed.map(({ name }) => name).join(', ')}`)

  // the same text is printed once, with all packages that are under it
  const texts = new Map()
  for (const { folder, name } of packages.filter(({ license }) => license !== 'Apache-2.0')) {
    const text = licenceText(folder)
    if (text !== undefined) texts.set(text, [...(texts.get(text) ?? []), name])
  }
  return [
    '# Third-party software in the bundled handlers',
    '',
    'The handlers (`dist/lambdas`) contain code of these packages. Written by `node scripts/third-party.mjs`.',
    '',
    '| package | version | licence |',
    '| --- | --- | --- |',
    ...packages.map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`),
    '',
    "Apache-2.0: the text of [LICENSE](LICENSE), which is this package's own too. The other texts:",
    ...[...texts].flatMap(([text, names]) => ['', `### ${[...new Set(names)].join(', ')}`, '', '```', text, '```']),
    '',
  ].join('\n')
}

function licenceText(folder) {
  const name = readdirSync(path.join(root, folder)).find((entry) => /^licen[sc]e(\.\w+)?$/i.test(entry))
  return name === undefined
    ? undefined
    : readFileSync(path.join(root, folder, name), 'utf8')
        .replaceAll('\r\n', '\n')
        .trim()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await thirdParty()
  const changed = !existsSync(file) || readFileSync(file, 'utf8') !== text
  if (changed) writeFileSync(file, text)
  console.log(`THIRD-PARTY.md ${changed ? 'written' : 'is up to date'}`)
}
