import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { type App, Stack, Validations } from 'aws-cdk-lib'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Tracing } from 'aws-cdk-lib/aws-lambda'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { AwsSolutionsChecks } from 'cdk-nag'
import { expect, it } from 'vitest'
import { OutboxDestination, OutboxRelay, OutboxRelayStack, parseStackConfig } from '../../lib/index.js'
import { exampleStack, temporaryApp } from './synthesis.js'

/** The rules of cdk-nag's AwsSolutions pack that an app breaks, without those whose breach the sources acknowledge. */
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

const configs = readdirSync('examples/config').filter((name) => name.endsWith('.json'))

const readConfig = (name: string) =>
  JSON.parse(readFileSync(path.join('examples/config', name), 'utf8')) as Readonly<Record<string, unknown>>

it.each(configs)('the stack of examples/config/%s breaks no rule of cdk-nag', (name) => {
  const app = temporaryApp()
  const config = parseStackConfig(readConfig(name))
  new OutboxRelayStack(app, 'outbox-relay', { config })
  expect(findings(app)).toEqual([])
})

it('nor does it with an address that alarms are mailed to', () => {
  const app = temporaryApp()
  exampleStack({ alarms: { email: 'on-call@example.com' } }, app)
  expect(findings(app)).toEqual([])
})

it('the construct breaks none either, traced by X-Ray and with several relays', () => {
  const app = temporaryApp()
  const stack = new Stack(app, 'shop', { env: { account: '111122223333', region: 'eu-central-1' } })
  const secretArn = 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:shop-a1B2c3'
  new OutboxRelay(stack, 'Outbox', {
    cluster: {
      clusterArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:shop',
      secret: Secret.fromSecretCompleteArn(stack, 'Secret', secretArn),
      database: 'shop',
    },
    destinations: { bus: OutboxDestination.eventBus(EventBus.fromEventBusName(stack, 'Bus', 'shop')) },
    relays: 2,
    reservedConcurrency: 4,
    tracing: Tracing.ACTIVE,
  })
  expect(findings(app)).toEqual([])
})

it('each acknowledgement of a breach gives its reason in a sentence', () => {
  const reasons = configs.flatMap((name) => {
    const config = parseStackConfig({ ...readConfig(name), tracing: 'on' })
    const { node } = new OutboxRelayStack(temporaryApp(), 'outbox-relay', { config })
    return node
      .findAll()
      .flatMap((construct) => construct.node.metadata)
      .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
      .flatMap(({ data }) => Object.entries(data as Readonly<Record<string, string>>))
  })
  expect(reasons).not.toEqual([])
  for (const [rule, reason] of reasons) expect(reason, rule).toMatch(/^[A-Z].{30,}$/)
})

it('the check has eyes: a queue that breaks rules is found', () => {
  const app = temporaryApp()
  new Queue(new Stack(app, 'careless'), 'Queue')
  expect(findings(app)).toContain('AwsSolutions-SQS3 at careless/Queue/Resource')
})
