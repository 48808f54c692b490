import type { Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Key } from 'aws-cdk-lib/aws-kms'
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { describe, expect, it } from 'vitest'
import { OutboxDestination, OutboxRelay } from '../../lib/index.js'
import { environmentOf, exampleTemplate, otherStack, resourcesOf, userSecretArn } from './synthesis.js'

interface Statement {
  readonly Effect: string
  readonly Action: string | readonly string[]
  readonly Resource: unknown
  readonly Condition?: unknown
}

const cluster = 'arn:aws:rds:eu-central-1:111122223333:cluster:orders'
const secret = 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders-outbox-a1B2c3'

/** Every statement of every role, as `role: actions on resource [if condition]`, and every managed policy. */
function rights(template: Template): string[] {
  const named: [string, Statement][] = []
  for (const [id, { Properties }] of Object.entries(resourcesOf(template, 'AWS::IAM::Role'))) {
    for (const policy of (Properties.Policies ?? []) as readonly {
      readonly PolicyDocument: { readonly Statement: readonly Statement[] }
    }[])
      for (const statement of policy.PolicyDocument.Statement) named.push([id, statement])
    for (const managed of (Properties.ManagedPolicyArns ?? []) as readonly unknown[])
      named.push([id, { Effect: 'Allow', Action: 'managed policy', Resource: managed }])
  }
  for (const { Properties } of Object.values(resourcesOf(template, 'AWS::IAM::Policy'))) {
    const roles = Properties.Roles as readonly { readonly Ref: string }[]
    const { Statement } = Properties.PolicyDocument as { readonly Statement: readonly Statement[] }
    for (const { Ref } of roles) for (const statement of Statement) named.push([Ref, statement])
  }
  return named.map(([role, { Effect, Action, Resource, Condition }]) => {
    const actions = typeof Action === 'string' ? Action : Action.join(' ')
    const condition = Condition === undefined ? '' : ` if ${JSON.stringify(Condition)}`
    return `${withoutHash(role)}: ${Effect === 'Allow' ? '' : `${Effect} `}${actions} on ${shown(Resource)}${condition}`
  })
}

const withoutHash = (logicalId: string): string => logicalId.replace(/[0-9A-F]{8}$/, '')

function shown(resource: unknown): string {
  if (typeof resource === 'string') return resource
  if (Array.isArray(resource)) return resource.map(shown).join(' + ')
  const reference = resource as {
    readonly Ref?: string
    readonly 'Fn::GetAtt'?: readonly [string, string]
    readonly 'Fn::Join'?: readonly [string, readonly unknown[]]
  }
  if (reference.Ref !== undefined) return withoutHash(reference.Ref)
  if (reference['Fn::GetAtt'] !== undefined) return withoutHash(reference['Fn::GetAtt'][0])
  if (reference['Fn::Join'] !== undefined) return reference['Fn::Join'][1].map(shown).join('')
  return JSON.stringify(resource)
}

const log = (name: string) => `Outbox${name}Role: logs:CreateLogStream logs:PutLogEvents on Outbox${name}Logs`
const failures = (name: string) => `Outbox${name}Role: sqs:SendMessage on OutboxFailedInvocations`

describe('the rights of every role', () => {
  it('are these, and no other', () => {
    expect(rights(exampleTemplate()).sort()).toEqual(
      [
        log('Relay'),
        `OutboxRelayRole: rds-data:ExecuteStatement on ${cluster}`,
        `OutboxRelayRole: secretsmanager:GetSecretValue on OutboxUsersRelay`,
        'OutboxRelayRole: events:PutEvents events:DescribeEventBus on arn:aws:events:eu-central-1:111122223333:event-bus/orders',
        'OutboxRelayRole: sqs:SendMessage sqs:GetQueueAttributes on arn:aws:sqs:eu-central-1:111122223333:billing',
        'OutboxRelayRole: sqs:SendMessage sqs:GetQueueAttributes on arn:aws:sqs:eu-central-1:111122223333:shipping.fifo',
        log('Cleanup'),
        `OutboxCleanupRole: rds-data:ExecuteStatement on ${cluster}`,
        `OutboxCleanupRole: secretsmanager:GetSecretValue on OutboxUsersCleanup`,
        failures('Cleanup'),
        log('Monitor'),
        `OutboxMonitorRole: rds-data:ExecuteStatement on ${cluster}`,
        `OutboxMonitorRole: secretsmanager:GetSecretValue on OutboxUsersMonitor`,
        log('Canary'),
        `OutboxCanaryRole: rds-data:ExecuteStatement on ${cluster}`,
        `OutboxCanaryRole: secretsmanager:GetSecretValue on OutboxUsersCanary`,
        log('Migrate'),
        failures('Migrate'),
        `OutboxMigrateRole: rds-data:BeginTransaction rds-data:ExecuteStatement rds-data:CommitTransaction rds-data:RollbackTransaction on ${cluster}`,
        `OutboxMigrateRole: secretsmanager:GetSecretValue on ${secret}`,
        ...['Relay', 'Cleanup', 'Monitor', 'Canary'].map(
          (name) =>
            `OutboxMigrateRole: secretsmanager:GetSecretValue secretsmanager:PutSecretValue secretsmanager:UpdateSecretVersionStage on OutboxUsers${name}`,
        ),
        'OutboxRelayScheduleRole: lambda:InvokeFunction on OutboxRelayFunction',
        'OutboxMonitorScheduleRole: lambda:InvokeFunction on OutboxMonitorFunction',
        'OutboxCleanupScheduleRole: lambda:InvokeFunction on OutboxCleanupFunction',
        'OutboxCanaryScheduleRole: lambda:InvokeFunction on OutboxCanaryFunction',
      ].sort(),
    )
  })

  it('reach a customer-managed key only through the service that it seals for', () => {
    const key = (id: string) => `arn:aws:kms:eu-central-1:111122223333:key/${id}`
    const template = exampleTemplate({
      cluster: { clusterArn: cluster, secretArn: secret, secretKeyArn: key('secret'), database: 'orders' },
      destinations: {
        bus: { type: 'sqs', queueArn: 'arn:aws:sqs:eu-central-1:111122223333:billing', keyArn: key('queue') },
        topic: { type: 'sns', topicArn: 'arn:aws:sns:eu-central-1:111122223333:news', keyArn: key('topic') },
      },
      routes: [],
      userSecretsKeyArn: key('users'),
    })
    const through = (service: string) => ` if {"StringEquals":{"kms:ViaService":"${service}.eu-central-1.amazonaws.com"}}`
    const keys = rights(template).filter((right) => right.includes('kms:'))
    expect(keys.sort()).toEqual(
      [
        `OutboxMigrateRole: kms:Decrypt on ${key('secret')}${through('secretsmanager')}`,
        `OutboxMigrateRole: kms:Decrypt kms:GenerateDataKey on ${key('users')}${through('secretsmanager')}`,
        ...['Relay', 'Cleanup', 'Monitor'].map(
          (name) => `Outbox${name}Role: kms:Decrypt on ${key('users')}${through('secretsmanager')}`,
        ),
        `OutboxRelayRole: kms:GenerateDataKey kms:Decrypt on ${key('queue')}${through('sqs')}`,
        `OutboxRelayRole: kms:GenerateDataKey kms:Decrypt on ${key('topic')}${through('sns')}`,
      ].sort(),
    )
    expect(rights(template)).toContain(
      'OutboxRelayRole: sns:Publish sns:GetTopicAttributes on arn:aws:sns:eu-central-1:111122223333:news',
    )
  })

  it('let Secrets Manager of this account, and nobody else, invoke the function that rotates', () => {
    const permissions = Object.values(resourcesOf(exampleTemplate(), 'AWS::Lambda::Permission'))
      .map(({ Properties }) => Properties)
      .filter(({ FunctionName }) => shown(FunctionName) === 'OutboxMigrateFunction')
    expect(permissions).toEqual([
      expect.objectContaining({ Principal: 'secretsmanager.amazonaws.com', SourceAccount: '111122223333' }),
    ])
  })

  it('hold no "*"', () => {
    expect(rights(exampleTemplate()).filter((right) => right.includes('*'))).toEqual([])
  })

  it('are lent to Lambda and to Scheduler of this account alone', () => {
    const trust = Object.entries(resourcesOf(exampleTemplate(), 'AWS::IAM::Role')).map(([id, { Properties }]) => {
      const { Statement } = Properties.AssumeRolePolicyDocument as {
        readonly Statement: readonly { readonly Principal: { readonly Service: string }; readonly Condition?: unknown }[]
      }
      return [
        withoutHash(id).endsWith('ScheduleRole'),
        ...Statement.map(({ Principal, Condition }) => [Principal.Service, Condition]),
      ]
    })
    for (const [isSchedule, ...statements] of trust)
      expect(statements).toEqual(
        isSchedule === true
          ? [['scheduler.amazonaws.com', { StringEquals: { 'aws:SourceAccount': '111122223333' } }]]
          : [['lambda.amazonaws.com', undefined]],
      )
  })
})

describe('grantWrite', () => {
  const granted = (secretOf: (stack: Stack) => ISecret) => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', {
      cluster: { clusterArn: cluster, secret: Secret.fromSecretCompleteArn(stack, 'Master', secret), database: 'orders' },
      destinations: { orders: OutboxDestination.queue(new Queue(stack, 'Queue')) },
      defaultDestination: 'orders',
    })
    const service = new Role(stack, 'Service', { assumedBy: new ServicePrincipal('ecs-tasks.amazonaws.com') })
    outbox.grantWrite(service, secretOf(stack)).assertSuccess()
    return rights(Template.fromStack(stack)).filter((right) => right.startsWith('Service: '))
  }
  const calls =
    'rds-data:BeginTransaction rds-data:ExecuteStatement rds-data:CommitTransaction rds-data:RollbackTransaction rds-data:BatchExecuteStatement'

  it('gives a service the calls of its transactions on the cluster, and the secret of its own user', () => {
    const own = 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:order-service-x1Y2z3'
    expect(granted((stack) => Secret.fromSecretCompleteArn(stack, 'Own', own)).sort()).toEqual([
      `Service: ${calls} on ${cluster}`,
      `Service: secretsmanager:GetSecretValue on ${own}`,
    ])
  })

  it("gives it that secret's key, through Secrets Manager alone", () => {
    const sealed = (stack: Stack) => new Secret(stack, 'Own', { encryptionKey: new Key(stack, 'Key') })
    expect(granted(sealed).sort()).toEqual([
      'Service: kms:Decrypt on Key if {"StringEquals":{"kms:ViaService":"secretsmanager.eu-central-1.amazonaws.com"}}',
      `Service: ${calls} on ${cluster}`,
      'Service: secretsmanager:GetSecretValue on Own',
    ])
  })
})

describe("a function's database user", () => {
  it('has a secret with a name of its own and a generated password, rotated every 30 days', () => {
    const template = exampleTemplate()
    const secrets = Object.values(resourcesOf(template, 'AWS::SecretsManager::Secret')).map(({ Properties }) => Properties)
    expect(secrets.map(({ GenerateSecretString }) => GenerateSecretString)).toEqual(
      ['relay', 'cleanup', 'monitor', 'canary'].map((role) => ({
        SecretStringTemplate: `{"username":"orders_${role}"}`,
        GenerateStringKey: 'password',
        PasswordLength: 40,
        ExcludePunctuation: true,
      })),
    )
    const schedules = Object.values(resourcesOf(template, 'AWS::SecretsManager::RotationSchedule'))
    expect(schedules.map(({ Properties }) => [shown(Properties.SecretId), shown(Properties.RotationLambdaARN)])).toEqual(
      ['Relay', 'Cleanup', 'Monitor', 'Canary'].map((name) => [`OutboxUsers${name}`, 'OutboxMigrateFunction']),
    )
    for (const { Properties, DependsOn } of schedules) {
      expect(Properties).toMatchObject({ RotateImmediatelyOnUpdate: false, RotationRules: { AutomaticallyAfterDays: 30 } })
      // the users are there, and Secrets Manager may call: it tries the function when the schedule is made
      expect(DependsOn).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^OutboxMigration/),
          expect.stringMatching(/^OutboxMigrateFunctionRotationPermission/),
        ]),
      )
    }
  })

  it('keeps its password with passwordRotationDays 0, and has no canary where there is none', () => {
    const template = exampleTemplate({ passwordRotationDays: 0, canary: 'off' })
    expect(resourcesOf(template, 'AWS::SecretsManager::RotationSchedule')).toEqual({})
    expect(Object.keys(resourcesOf(template, 'AWS::SecretsManager::Secret')).map(withoutHash)).toEqual(
      ['Relay', 'Cleanup', 'Monitor'].map((name) => `OutboxUsers${name}`),
    )
  })

  it('is the one that its function logs in as; the migration alone has the master, and knows all', () => {
    const template = exampleTemplate()
    for (const name of ['Relay', 'Cleanup', 'Monitor', 'Canary'])
      expect(environmentOf(template, `Outbox${name}Function`)).toMatchObject({ OUTBOX_SECRET_ARN: userSecretArn(name) })
    const { OUTBOX_SECRET_ARN, OUTBOX_USER_SECRETS } = environmentOf(template, 'OutboxMigrateFunction')
    expect(OUTBOX_SECRET_ARN).toBe(secret)
    expect(JSON.parse(OUTBOX_USER_SECRETS!)).toEqual({
      relay: userSecretArn('Relay'),
      cleanup: userSecretArn('Cleanup'),
      monitor: userSecretArn('Monitor'),
      canary: userSecretArn('Canary'),
    })
  })

  it('has a name that PostgreSQL takes: a longer one is refused at synthesis', () => {
    expect(() => exampleTemplate({ installation: 'o'.repeat(54) })).toThrow(
      `installation is "${'o'.repeat(54)}", 54 characters, and database users are named after it, which PostgreSQL allows 63 characters. Give it a name of at most 53`,
    )
  })
})
