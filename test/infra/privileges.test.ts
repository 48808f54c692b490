import type { Template } from 'aws-cdk-lib/assertions'
import { describe, expect, it } from 'vitest'
import { exampleTemplate, resourcesOf } from './synthesis.js'

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
    readonly 'Fn::GetAtt'?: readonly [string, string]
    readonly 'Fn::Join'?: readonly [string, readonly unknown[]]
  }
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
        `OutboxRelayRole: secretsmanager:GetSecretValue on ${secret}`,
        'OutboxRelayRole: events:PutEvents on arn:aws:events:eu-central-1:111122223333:event-bus/orders',
        'OutboxRelayRole: sqs:SendMessage sqs:GetQueueAttributes on arn:aws:sqs:eu-central-1:111122223333:billing',
        'OutboxRelayRole: sqs:SendMessage sqs:GetQueueAttributes on arn:aws:sqs:eu-central-1:111122223333:shipping.fifo',
        log('Cleanup'),
        `OutboxCleanupRole: rds-data:ExecuteStatement on ${cluster}`,
        `OutboxCleanupRole: secretsmanager:GetSecretValue on ${secret}`,
        failures('Cleanup'),
        log('Monitor'),
        `OutboxMonitorRole: rds-data:ExecuteStatement on ${cluster}`,
        `OutboxMonitorRole: secretsmanager:GetSecretValue on ${secret}`,
        log('Migrate'),
        failures('Migrate'),
        `OutboxMigrateRole: rds-data:BeginTransaction rds-data:ExecuteStatement rds-data:CommitTransaction rds-data:RollbackTransaction on ${cluster}`,
        `OutboxMigrateRole: secretsmanager:GetSecretValue on ${secret}`,
        'OutboxRelayScheduleRole: lambda:InvokeFunction on OutboxRelayFunction',
        'OutboxMonitorScheduleRole: lambda:InvokeFunction on OutboxMonitorFunction',
        'OutboxCleanupScheduleRole: lambda:InvokeFunction on OutboxCleanupFunction',
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
    })
    const through = (service: string) => ` if {"StringEquals":{"kms:ViaService":"${service}.eu-central-1.amazonaws.com"}}`
    const keys = rights(template).filter((right) => right.includes('kms:'))
    expect(keys.sort()).toEqual(
      [
        ...['Relay', 'Cleanup', 'Monitor', 'Migrate'].map(
          (name) => `Outbox${name}Role: kms:Decrypt on ${key('secret')}${through('secretsmanager')}`,
        ),
        `OutboxRelayRole: kms:GenerateDataKey kms:Decrypt on ${key('queue')}${through('sqs')}`,
        `OutboxRelayRole: kms:GenerateDataKey kms:Decrypt on ${key('topic')}${through('sns')}`,
      ].sort(),
    )
    expect(rights(template)).toContain(
      'OutboxRelayRole: sns:Publish sns:GetTopicAttributes on arn:aws:sns:eu-central-1:111122223333:news',
    )
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
