// Prints the tests that failed in a run of vitest, with what they said, from its JSON report in OUTBOX_TEST_RESULTS.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

const LINES = 12
const file = process.env.OUTBOX_TEST_RESULTS ?? ''
const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { testResults: [] }
for (const suite of report.testResults) {
  const failed = suite.assertionResults.filter((test) => test.status === 'failed')
  if (suite.status === 'failed' && failed.length === 0) failed.push({ fullName: '(the file)', failureMessages: [suite.message] })
  for (const test of failed) {
    console.log(`${path.relative(process.cwd(), suite.name)} > ${test.fullName}`)
    console.log(
      test.failureMessages
        .join('\n')
        .split('\n')
        .slice(0, LINES)
        .map((line) => `    ${line}`)
        .join('\n'),
    )
  }
}
