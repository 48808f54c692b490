import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

// docs/delivery.md and docs/lessons.md promise that a test shows each of their rows. They cite tests as `tier/file.ts` "title",
// "another title"; `…` stands for what a test fills into its title.

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')

interface Citation {
  readonly file: string
  readonly title: string
}

const testFile = /`((?:unit|property|contract|integration|infra|e2e|chaos)\/[\w./-]+\.ts)`/g

function citationsIn(text: string): Citation[] {
  return [...text.matchAll(new RegExp(`${testFile.source}((?:,? "[^"]+")*)`, 'g'))].flatMap(([, file = '', titles = '']) =>
    [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => ({ file: `test/${file}`, title })),
  )
}

const holes = (title: string): string => title.replace(/%[sdifjoO]|\$\w+(?:\.\w+)*/g, '…')

/** The titles of the tests that a file runs: those of `it` and `test`, plain or of a table; not of what is skipped. */
function readTitles(file: string): string[] {
  if (!existsSync(path.join(root, file))) return []
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest)
  const titles: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const [title] = node.arguments
      const callee = node.expression.getText(source)
      if (title !== undefined && /^(?:it|test)\b/.test(callee) && !/\.(?:skip|todo|fails)\b/.test(callee)) {
        if (ts.isStringLiteralLike(title)) titles.push(holes(title.text))
        else if (ts.isTemplateExpression(title))
          titles.push(holes([title.head.text, ...title.templateSpans.map(({ literal }) => literal.text)].join('…')))
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return titles
}

const known = new Map<string, string[]>()
function titlesOf(file: string): string[] {
  const titles = known.get(file) ?? readTitles(file)
  known.set(file, titles)
  return titles
}

/** The rows of all tables of a document whose first cell is a number. */
const numberedRows = (document: string): { readonly number: number; readonly cells: readonly string[] }[] =>
  [...read(document).matchAll(/^\| (\d+) \|(.*)\|$/gm)].map(([, number, rest = '']) => ({
    number: Number(number),
    cells: rest.split(' | ').map((cell) => cell.trim()),
  }))

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1)

describe.each(['docs/lessons.md', 'docs/delivery.md'])('%s', (document) => {
  const text = read(document)

  it('cites tests that exist, by file and title', { timeout: 60_000 }, () => {
    const citations = citationsIn(text)
    expect(citations.length).toBeGreaterThan(30)
    expect(citations.filter(({ file, title }) => !titlesOf(file).includes(title))).toEqual([])
    // one that is all holes says nothing
    expect(citations.filter(({ title }) => (title.match(/\p{L}+/gu) ?? []).length < 3)).toEqual([])
  })

  it('names no test file without the title of a test', () => {
    const named = [...text.matchAll(testFile)].length
    const titled = [...text.matchAll(new RegExp(`${testFile.source},? "`, 'g'))].length
    expect(titled).toBe(named)
  })
})

describe('docs/lessons.md', () => {
  const rows = numberedRows('docs/lessons.md')

  it('has each of the 66 lessons once, in order', () => {
    expect(rows.map(({ number }) => number)).toEqual(upTo(66))
  })

  it('says of each whether it is impossible or detected, and shows it by a test', () => {
    const wanting = rows.filter(
      ({ cells: [, here = '', tests = ''] }) => !/\*\*(?:Impossible|Detected)\*\*/.test(here) || citationsIn(tests).length === 0,
    )
    expect(wanting).toEqual([])
  })
})

describe('docs/delivery.md', () => {
  it('has each of the 17 rules once, in order, and shows it by a test', () => {
    const rules = numberedRows('docs/delivery.md')
    expect(rules.map(({ number }) => number)).toEqual(upTo(17))
    expect(rules.filter(({ cells }) => citationsIn(cells.at(-1) ?? '').length === 0)).toEqual([])
  })

  it('says of each window what the database has, what the consumer sees, and shows it by a test', () => {
    const windows = [...read('docs/delivery.md').matchAll(/^\| ([A-Z]\d+) \|(.*)\|$/gm)].map(([, name, rest = '']) => ({
      name,
      cells: rest.split(' | '),
    }))
    expect(windows.length).toBeGreaterThan(20)
    expect(new Set(windows.map(({ name }) => name)).size).toBe(windows.length)
    expect(windows.filter(({ cells }) => cells.length !== 4 || cells.some((cell) => cell.trim() === ''))).toEqual([])
    expect(windows.filter(({ cells }) => citationsIn(cells[3] ?? '').length === 0)).toEqual([])
  })
})
