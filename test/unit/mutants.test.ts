import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { mutants } from '../../scripts/mutants/list.js'
import { mutated, tierOf, type Killer } from '../../scripts/mutants/mutant.js'
import { isAssertion, readReport } from '../../scripts/mutants/test-run.js'

/** What must be in the list, whatever else is. */
const REQUIRED = [
  'ignore-failed-entry-count',
  'unknown-entry-is-success',
  'settle-without-token',
  'settle-by-owner',
  'look-before-the-shard-is-locked',
  'skip-the-read-committed-check',
  'lock-shards-in-another-order',
  'charge-on-throttle',
  'never-charge',
  'two-events-of-a-key-in-one-request',
  'publish-before-the-one-before-is-confirmed',
  'watermark',
  'cleanup-without-the-undelivered-check',
  'ignore-the-changed-row-count',
  'no-renewal',
  'no-lease-check-before-a-request',
  'swallow-an-ambiguous-commit',
  'retry-an-insert-with-a-new-id',
  'hold-without-the-key-block',
  'release-followers-in-wrong-order',
  'lose-the-release-chain-after-500',
  'redrive-with-a-new-id',
  'replay-without-a-new-deduplication-id',
  'settle-everything-while-a-request-is-out',
  'give-back-a-shard-in-flight',
  'backlog-age-from-created-at',
  'skip-an-event-whose-payload-is-missing',
  'count-a-timeout-as-a-crash',
  'half-open-lets-everything-through',
  'retry-ignores-retry-at',
  'audit-outside-the-transaction',
]

/** The text of a test file, and of the suites beside it that it may share with others. */
function testsOf(file: string): string {
  const folder = path.dirname(file)
  const shared = readdirSync(folder).filter((name) => name.endsWith('-contract.ts'))
  return [file, ...shared.map((name) => path.join(folder, name))].map((name) => readFileSync(name, 'utf8')).join('\n')
}

describe('the list of mutants', () => {
  it('has every break that must be in it, under a name of its own', () => {
    const names = mutants.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(REQUIRED))
    expect(new Set(names).size).toBe(names.length)
  })

  it.each(mutants)('$name can be applied: its text is in $file exactly once, and changes it', (mutant) => {
    const source = readFileSync(mutant.file, 'utf8')
    expect(mutated(mutant, source)).not.toBe(source)
  })

  it.each(mutants)('$name has killers that exist', ({ killers }) => {
    expect(killers.length).toBeGreaterThan(0)
    for (const { file, test } of killers) {
      expect(existsSync(file), file).toBe(true)
      expect(readFileSync('vitest.config.ts', 'utf8')).toContain(`tier('${tierOf(file)}'`)
      expect(testsOf(file)).toContain(test)
    }
  })

  it('refuses a text that is not there, or there twice', () => {
    const mutant = { name: 'm', breaks: '', file: 'f.ts', find: 'a', replace: '$&b', killers: [] }
    expect(mutated(mutant, 'xay')).toBe('x$&by')
    expect(() => mutated(mutant, 'xyz')).toThrow('mutant m: f.ts has its text 0 times; allowed: exactly once: a')
    expect(() => mutated(mutant, 'a a')).toThrow('has its text 2 times')
    const both = { ...mutant, also: { find: 'y', replace: 'z' } }
    expect(mutated(both, 'xay')).toBe('x$&bz')
    expect(() => mutated(both, 'xa')).toThrow('has its text 0 times; allowed: exactly once: y')
  })
})

describe('a run of the killers', () => {
  const suite = (...assertionResults: readonly object[]) =>
    JSON.stringify({
      testResults: [{ name: '/copy/test/unit/a.test.ts', status: 'failed', message: 'no such column', assertionResults }],
    })
  const test = (status: string, ...failureMessages: readonly string[]) => ({ fullName: 'does it', status, failureMessages })
  const killer: Killer = { file: 'test/unit/a.test.ts', test: 'does it' }

  it('tells a failing assertion from a timeout or an error of another kind', () => {
    const run = readReport(suite(test('failed', 'AssertionError: expected 1 to be 2')), '/copy', '')
    expect(run).toMatchObject({ passed: [], failed: [killer], hindrance: null })
    expect(run.failed.map(isAssertion)).toEqual([true])
    const rejecting = readReport(suite(test('failed', "Error: promise resolved '1' instead of rejecting")), '/copy', '')
    expect(rejecting.failed.map(isAssertion)).toEqual([true])
    const broken = readReport(suite(test('failed', 'error: column "x" does not exist')), '/copy', '')
    expect(broken.failed.map(isAssertion)).toEqual([false])
  })

  it.each([
    ['of which no test could run', suite(), 'test/unit/a.test.ts: no such column'],
    ['that chose no test', suite(test('skipped')), 'test/unit/a.test.ts: no such column'],
    ['that found no file', JSON.stringify({ testResults: [] }), 'no test ran: said'],
    ['that left no report', null, 'the tests did not end: said'],
  ])('%s proves nothing', (_, report, hindrance) => {
    expect(readReport(report, '/copy', 'said')).toEqual({ passed: [], failed: [], hindrance })
  })
})
