import { readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { ownEnvironment, runProgram, tail } from '../deploy-check/program.js'
import { tierOf, type Killer } from './mutant.js'

/** Of one test in vitest's JSON report. */
interface Assertion {
  readonly fullName: string
  readonly status: string
  readonly failureMessages: readonly string[]
}

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly message?: string
    readonly status: string
    readonly assertionResults: readonly Assertion[]
  }[]
}

export interface TestRun {
  readonly passed: readonly Killer[]
  readonly failed: readonly (Killer & { readonly message: string })[]
  /** Why no test could say anything: a file that did not load, a database that did not start. */
  readonly hindrance: string | null
}

export interface TestRunOptions {
  readonly directory: string
  readonly killers: readonly Killer[]
  /** Beyond it nothing is waited for. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

/** Runs these tests, and no others of their files. */
export async function runTests({ directory, killers, limitMs, signal }: TestRunOptions): Promise<TestRun> {
  const report = path.join(directory, 'mutants-report.json')
  await rm(report, { force: true })
  const files = [...new Set(killers.map(({ file }) => file))]
  const { output } = await runProgram(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      ...[...new Set(files.map(tierOf))].flatMap((tier) => ['--project', tier]),
      '--testNamePattern',
      [...new Set(killers.map(({ test }) => escaped(test)))].join('|'),
      ...files,
    ],
    {
      cwd: directory,
      env: { ...ownEnvironment(), OUTBOX_TEST_RESULTS: report },
      logFile: path.join(directory, 'mutants.log'),
      signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
    },
  ).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error
  })
  signal.throwIfAborted()
  return readReport(await readFile(report, 'utf8').catch(() => null), directory, output)
}

/** @param report vitest's JSON; null: it wrote none */
export function readReport(report: string | null, directory: string, output: string): TestRun {
  if (report === null) return { passed: [], failed: [], hindrance: `the tests did not end: ${tail(output)}` }
  const suites = (JSON.parse(report) as Report).testResults
  const tests = suites.flatMap(({ name, assertionResults }) =>
    assertionResults.map((test) => ({ ...test, file: path.relative(directory, name), test: test.fullName })),
  )
  const unloaded = suites.find(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  )
  return {
    passed: tests.filter(({ status }) => status === 'passed').map(({ file, test }) => ({ file, test })),
    failed: tests
      .filter(({ status }) => status === 'failed')
      .map(({ file, test, failureMessages }) => ({ file, test, message: failureMessages.join('\n') })),
    hindrance:
      unloaded !== undefined
        ? `${path.relative(directory, unloaded.name)}: ${unloaded.message ?? 'failed without a test'}`
        : tests.some(({ status }) => status === 'passed' || status === 'failed')
          ? null
          : `no test ran: ${tail(output)}`,
  }
}

/** A failing assertion, and no timeout or error of another kind. Those of `rejects` and `resolves` are plain errors in a report. */
export const isAssertion = ({ message }: { readonly message: string }): boolean =>
  /^(AssertionError|Error: promise (resolved|rejected) |Error: expected )/.test(message)

/** Whether a test is one that a killer names. */
export const isNamed = (by: Killer, { file, test }: Killer): boolean => file === by.file && test.includes(by.test)

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
