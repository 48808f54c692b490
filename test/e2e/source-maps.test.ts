import { readFileSync, statSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { describe, expect, it } from 'vitest'

// The handlers run with --enable-source-maps: a stack trace in a log must lead to the file and line that a reader of this
// repository has before him.

const handlers = ['relay', 'cleanup', 'monitor', 'migrate', 'canary'] as const

describe.each(handlers)('the map of the bundle of %s', (handler) => {
  const bundle = readFileSync(`dist/lambdas/${handler}/index.mjs`, 'utf8')
  const map = new SourceMap(JSON.parse(readFileSync(`dist/lambdas/${handler}/index.mjs.map`, 'utf8')) as SourceMapPayload)
  /** The original file of the place where a text stands in the bundle, and its line there. */
  const origin = (text: string) => {
    const at = bundle.indexOf(text)
    expect(at, text).toBeGreaterThan(-1)
    const before = bundle.slice(0, at).split('\n')
    const entry = map.findEntry(before.length - 1, before.at(-1)!.length)
    return 'originalSource' in entry ? { file: entry.originalSource, line: entry.originalLine } : undefined
  }

  it('leads to the line of a source of ours', () => {
    const found = origin('UnexpectedAnswer')
    expect(found?.file).toMatch(/src\/store\/postgres\/row\.ts$/)
    const line = readFileSync('src/store/postgres/row.ts', 'utf8').split('\n')[found?.line ?? -1]
    expect(line).toContain("errorName: 'UnexpectedAnswer'")
  })

  it('leaves out the lines of packages, which would be nine tenths of it', () => {
    expect(statSync(`dist/lambdas/${handler}/index.mjs.map`).size).toBeLessThan(bundle.length / 2)
  })
})
