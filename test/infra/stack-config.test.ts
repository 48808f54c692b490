import { Match, type Template } from 'aws-cdk-lib/assertions'
import { describe, expect, it } from 'vitest'
import { exampleConfig, exampleTemplate, resource, resourcesOf } from './synthesis.js'

describe('what the configuration says reaches the stack', () => {
  it('so many relays, and the concurrency that is kept for them', () => {
    const template = exampleTemplate({ relays: 3, reservedConcurrency: 6 })
    const schedules = Object.keys(resourcesOf(template, 'AWS::Scheduler::Schedule'))
    expect(schedules.filter((id) => id.startsWith('OutboxRelaySchedule'))).toHaveLength(3)
    expect(resource(template, 'AWS::Lambda::Function', 'OutboxRelayFunction').Properties.ReservedConcurrentExecutions).toBe(6)
  })

  it('X-Ray, for every function', () => {
    const functions = Object.values(resourcesOf(exampleTemplate({ tracing: 'on' }), 'AWS::Lambda::Function'))
    for (const { Properties } of functions) expect(Properties.TracingConfig).toEqual({ Mode: 'Active' })
  })

  it('a schema that is kept elsewhere: no migration, and nobody with the rights for one', () => {
    const template = exampleTemplate({ schema: 'managed-elsewhere' })
    template.resourceCountIs('Custom::OutboxMigration', 0)
    expect(template.findOutputs('*')).not.toHaveProperty('MigrateFunctionName')
    expect(JSON.stringify(template.toJSON())).not.toContain('rds-data:BeginTransaction')
    exampleTemplate({ schema: 'managed' }).resourceCountIs('Custom::OutboxMigration', 1)
  })

  it('whom the migration takes the outbox over from, and migrates anew because of it', () => {
    const migration = (template: Template) => Object.values(resourcesOf(template, 'Custom::OutboxMigration'))[0]!.Properties
    const template = exampleTemplate({ takeOverFrom: 'shop' })
    template.hasResourceProperties('AWS::Lambda::Function', {
      Environment: { Variables: Match.objectLike({ OUTBOX_INSTALLATION: 'orders', OUTBOX_TAKE_OVER_FROM: 'shop' }) },
    })
    expect(migration(template)).not.toEqual(migration(exampleTemplate()))
  })

  it('the permissions boundary, on every role', () => {
    const permissionsBoundaryArn = 'arn:aws:iam::111122223333:policy/developers'
    const cluster = { create: {}, database: 'orders' }
    const template = exampleTemplate({
      permissionsBoundaryArn,
      cluster,
      destinations: { bus: { type: 'sns', create: {} } },
      routes: [],
    })
    const roles = Object.values(resourcesOf(template, 'AWS::IAM::Role'))
    expect(roles.length).toBeGreaterThanOrEqual(7)
    for (const { Properties } of roles) expect(Properties.PermissionsBoundary).toBe(permissionsBoundaryArn)
  })

  it('the tags, on everything that can have some', () => {
    const cluster = { create: {}, database: 'orders' }
    const template = exampleTemplate({ tags: { team: 'orders', 'cost-centre': '42' }, cluster })
    const wanted = {
      Tags: Match.arrayWith([
        { Key: 'cost-centre', Value: '42' },
        { Key: 'team', Value: 'orders' },
      ]),
    }
    for (const type of [
      'AWS::Lambda::Function',
      'AWS::IAM::Role',
      'AWS::RDS::DBCluster',
      'AWS::Logs::LogGroup',
      'AWS::SQS::Queue',
    ])
      template.allResourcesProperties(type, wanted)
  })

  it('the thresholds of alarms', () => {
    const template = exampleTemplate({ alarms: { backlogAgeSeconds: 90, relayErrors: 2, leaseLost: 3, dataApiErrors: 4 } })
    const threshold = (id: string): unknown =>
      resource(template, 'AWS::CloudWatch::Alarm', `Outbox${id}Alarm`).Properties.Threshold
    expect(['BacklogAge', 'RelayErrors', 'LeaseLost', 'DataApiErrors'].map(threshold)).toEqual([90, 2, 3, 4])
  })

  it('no canary, where it is switched off', () => {
    const canaries = (changes: Readonly<Record<string, unknown>>) =>
      Object.keys(resourcesOf(exampleTemplate(changes), 'AWS::Lambda::Function')).filter((id) => id.startsWith('OutboxCanary'))
    expect(canaries({})).toHaveLength(1)
    expect(canaries({ canary: 'off' })).toEqual([])
  })
})

it('of an existing cluster nothing is made', () => {
  expect(exampleConfig().cluster).not.toHaveProperty('create')
  for (const type of ['DBCluster', 'DBInstance']) exampleTemplate().resourceCountIs(`AWS::RDS::${type}`, 0)
  exampleTemplate().resourceCountIs('AWS::EC2::VPC', 0)
})
