import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type App, Stack, Validations } from 'aws-cdk-lib'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { AwsSolutionsChecks } from 'cdk-nag'
import { expect, it } from 'vitest'
import { exampleStack, temporaryApp } from './synthesis.js'

/** The rules of cdk-nag's AwsSolutions pack that an app breaks, none of them acknowledged in the sources. */
function findings(app: App): string[] {
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app))
  try {
    app.synth()
  } catch (error) {
    // the findings themselves are in the report
    if (!(error instanceof Error) || !error.message.includes('validation-report.json')) throw error
  }
  const report = JSON.parse(readFileSync(path.join(app.outdir, 'validation-report.json'), 'utf8')) as {
    readonly pluginReports: readonly {
      readonly violations: readonly {
        readonly ruleName: string
        readonly violatingConstructs: readonly { readonly constructPath: string }[]
      }[]
    }[]
  }
  return report.pluginReports.flatMap(({ violations }) =>
    violations.flatMap(({ ruleName, violatingConstructs }) =>
      violatingConstructs.map((at) => `${ruleName} at ${at.constructPath}`),
    ),
  )
}

it('the stack breaks no rule of cdk-nag, with a new alarm topic and its key', () => {
  const app = temporaryApp()
  exampleStack({ alarms: { email: 'on-call@example.com' } }, app)
  expect(findings(app)).toEqual([])
})

it('the check has eyes: a queue that breaks rules is found', () => {
  const app = temporaryApp()
  new Queue(new Stack(app, 'careless'), 'Queue')
  expect(findings(app)).toContain('AwsSolutions-SQS3 at careless/Queue/Resource')
})
