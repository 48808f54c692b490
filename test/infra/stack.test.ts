import { Match } from 'aws-cdk-lib/assertions'
import { describe, expect, it } from 'vitest'
import { parseSettings } from '../../src/config/parse.js'
import { cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../../src/config/settings.js'
import { environmentOf, exampleConfig, exampleTemplate, resource, resourcesOf, userSecretArn } from './synthesis.js'

const functions = {
  relay: 'OutboxRelayFunction',
  cleanup: 'OutboxCleanupFunction',
  monitor: 'OutboxMonitorFunction',
  migrate: 'OutboxMigrateFunction',
}

describe('the functions', () => {
  it('run on Node 24 and arm64, every one of the stack, each with a log group that forgets', () => {
    const template = exampleTemplate()
    const groups = resourcesOf(template, 'AWS::Logs::LogGroup')
    const all = Object.values(resourcesOf(template, 'AWS::Lambda::Function'))
    expect(all.length).toBeGreaterThanOrEqual(4)
    for (const { Properties } of all)
      expect(Properties).toMatchObject({ Runtime: 'nodejs24.x', Architectures: ['arm64'], Handler: 'index.handler' })
    const used = all.map(({ Properties }) => (Properties.LoggingConfig as { LogGroup: { Ref: string } }).LogGroup.Ref)
    expect(used.sort()).toEqual(Object.keys(groups).sort())
    for (const { Properties } of Object.values(groups)) expect(Properties).toEqual({ RetentionInDays: 30 })
  })

  it('are traced by X-Ray only if that is asked for', () => {
    for (const { Properties } of Object.values(resourcesOf(exampleTemplate(), 'AWS::Lambda::Function')))
      expect(Properties.TracingConfig).toBeUndefined()
  })

  it('have the memory and the time they need: the relay longer than its pass, its pass longer than the period', () => {
    const template = exampleTemplate()
    const shape = Object.entries(functions).map(([name, id]) => {
      const { MemorySize, Timeout } = resource(template, 'AWS::Lambda::Function', id).Properties
      return [name, MemorySize, Timeout]
    })
    expect(shape).toEqual([
      ['relay', 512, 90],
      ['cleanup', 256, 300],
      ['monitor', 256, 55],
      ['migrate', 256, 330],
    ])
    expect(parseSettings(relaySettings, environmentOf(template, functions.relay)).passSeconds).toBe(75)
  })

  it('get settings that they read back as the configuration says', () => {
    const template = exampleTemplate({ failedRetentionDays: 30, retentionDays: 0.5, relay: { maxAttempts: 4 } })
    const as = (secretArn: string) => ({
      resourceArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:orders',
      secretArn,
      database: 'orders',
      schema: 'public',
      installation: 'orders',
    })
    expect(parseSettings(relaySettings, environmentOf(template, functions.relay))).toMatchObject({
      ...as(userSecretArn('Relay')),
      source: 'orders',
      destinations: {
        bus: { type: 'eventbridge', eventBusName: 'arn:aws:events:eu-central-1:111122223333:event-bus/orders' },
        billing: { type: 'sqs', queueUrl: 'https://sqs.eu-central-1.amazonaws.com/111122223333/billing' },
        shipping: { type: 'sqs', queueUrl: 'https://sqs.eu-central-1.amazonaws.com/111122223333/shipping.fifo' },
      },
      routes: [
        { eventType: 'Invoice*', to: 'billing' },
        { eventType: 'Shipment*', to: 'shipping', onFailure: 'block' },
      ],
      defaultDestination: 'bus',
      profile: 'continuous',
      maxAttempts: 4,
    })
    expect(parseSettings(cleanupSettings, environmentOf(template, functions.cleanup))).toMatchObject({
      ...as(userSecretArn('Cleanup')),
      retentionSeconds: 43_200,
      failedRetentionSeconds: 2_592_000,
    })
    expect(parseSettings(monitorSettings, environmentOf(template, functions.monitor))).toEqual(as(userSecretArn('Monitor')))
    expect(parseSettings(migrateSettings, environmentOf(template, functions.migrate))).toMatchObject({
      ...as('arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders-outbox-a1B2c3'),
      migrateSeconds: 300,
      userSecrets: Object.fromEntries(
        ['Relay', 'Cleanup', 'Monitor', 'Canary'].map((name) => [name.toLowerCase(), userSecretArn(name)]),
      ),
    })
  })

  it('speak to the endpoints of their own partition', () => {
    const template = exampleTemplate({
      cluster: {
        clusterArn: 'arn:aws-cn:rds:cn-north-1:111122223333:cluster:orders',
        secretArn: 'arn:aws-cn:secretsmanager:cn-north-1:111122223333:secret:orders-a1B2c3',
        database: 'orders',
      },
      destinations: { bus: { type: 'sqs', queueArn: 'arn:aws-cn:sqs:cn-north-1:111122223333:billing' } },
      routes: [],
    })
    expect(environmentOf(template, functions.relay).OUTBOX_DESTINATIONS).toBe(
      '{"bus":{"type":"sqs","queueUrl":"https://sqs.cn-north-1.amazonaws.com.cn/111122223333/billing"}}',
    )
  })

  it('let an event lead to another through the outbox as often as the business likes', () => {
    const template = exampleTemplate()
    expect(resource(template, 'AWS::Lambda::Function', functions.relay).Properties.RecursiveLoop).toBe('Allow')
    expect(resource(template, 'AWS::Lambda::Function', functions.cleanup).Properties.RecursiveLoop).toBeUndefined()
  })
})

describe('the schedules', () => {
  it('tick every minute for relay and monitor, every hour for cleanup', () => {
    const template = exampleTemplate()
    const expressions = ['OutboxRelaySchedule', 'OutboxMonitorSchedule', 'OutboxCleanupSchedule'].map(
      (id) => resource(template, 'AWS::Scheduler::Schedule', id).Properties.ScheduleExpression,
    )
    expect(expressions).toEqual(['rate(1 minute)', 'rate(1 minute)', 'rate(1 hour)'])
  })

  it('never store up ticks: no retry and an age of 60 s, on the schedule and in the functions own queue', () => {
    const template = exampleTemplate()
    const schedules = Object.values(resourcesOf(template, 'AWS::Scheduler::Schedule'))
    expect(schedules.length).toBeGreaterThanOrEqual(3)
    for (const { Properties } of schedules) {
      expect(Properties.Target).toMatchObject({ RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 } })
      expect(Properties.FlexibleTimeWindow).toEqual({ Mode: 'OFF' })
    }
    const invocations = Object.values(resourcesOf(template, 'AWS::Lambda::EventInvokeConfig'))
    expect(invocations).toHaveLength(Object.keys(resourcesOf(template, 'AWS::Lambda::Function')).length)
    for (const { Properties } of invocations)
      expect(Properties).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60, Qualifier: '$LATEST' })
  })

  it('lose no cleanup or migration that failed: it goes to a queue, sealed and reached by TLS alone', () => {
    const template = exampleTemplate()
    const [queue] = Object.entries(resourcesOf(template, 'AWS::SQS::Queue')).filter(([id]) =>
      id.startsWith('OutboxFailedInvocations'),
    )
    expect(queue?.[1].Properties).toEqual({ SqsManagedSseEnabled: true, MessageRetentionPeriod: 1_209_600 })
    template.hasResourceProperties('AWS::SQS::QueuePolicy', {
      Queues: [{ Ref: queue?.[0] }],
      PolicyDocument: {
        Statement: [Match.objectLike({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } })],
      },
    })
    const destinationOf = (id: string) =>
      resource(template, 'AWS::Lambda::EventInvokeConfig', `${id}EventInvokeConfig`).Properties.DestinationConfig
    for (const id of [functions.cleanup, functions.migrate])
      expect(destinationOf(id)).toEqual({ OnFailure: { Destination: { 'Fn::GetAtt': [queue?.[0], 'Arn'] } } })
    for (const id of [functions.relay, functions.monitor]) expect(destinationOf(id)).toBeUndefined()
  })

  it('wake the cluster once for relay, monitor and cleanup in profile drain', () => {
    const template = exampleTemplate({ profile: 'drain', tickMinutes: 15, alarms: {} })
    const expressions = ['OutboxRelaySchedule', 'OutboxMonitorSchedule', 'OutboxCleanupSchedule'].map(
      (id) => resource(template, 'AWS::Scheduler::Schedule', id).Properties.ScheduleExpression,
    )
    expect(expressions).toEqual(['cron(0/15 * * * ? *)', 'cron(0/15 * * * ? *)', 'cron(0 * * * ? *)'])
    template.hasResourceProperties('AWS::CloudWatch::Alarm', { Threshold: 1800 })
  })
})

describe('every alarm', () => {
  it.each([
    ['continuous', 5, { relay: { passSeconds: 320 } }],
    ['drain', 15, { alarms: {} }],
  ])('in profile %s looks over no period shorter than the tick of %i minutes', (profile, tickMinutes, changes) => {
    const alarms = Object.values(resourcesOf(exampleTemplate({ profile, tickMinutes, ...changes }), 'AWS::CloudWatch::Alarm'))
    expect(alarms).not.toEqual([])
    for (const { Properties } of alarms) expect(Properties.Period).toBeGreaterThanOrEqual(tickMinutes * 60)
  })
})

describe('the migration', () => {
  it('is called by CloudFormation, which waits longer than the function may take', () => {
    const template = exampleTemplate()
    const { Properties } = resource(template, 'Custom::OutboxMigration', 'OutboxMigration')
    expect(Properties).toMatchObject({
      ServiceToken: { 'Fn::GetAtt': [expect.stringMatching(/^OutboxMigrateFunction/) as string, 'Arn'] },
      ServiceTimeout: '420',
    })
    expect(resource(template, 'AWS::Lambda::Function', functions.migrate).Properties.Timeout).toBe(330)
  })

  it('runs again when its code or one of its settings changes, and only then', () => {
    const migration = (changes: Readonly<Record<string, unknown>>) =>
      resource(exampleTemplate(changes), 'Custom::OutboxMigration', 'OutboxMigration').Properties
    const { ServiceToken, ServiceTimeout, Release, ...settings } = migration({})
    expect([ServiceToken, ServiceTimeout].every((one) => one !== undefined)).toBe(true)
    expect(Release).toMatch(/^[0-9a-f]{64}$/)
    expect(settings).toEqual(environmentWithoutOptions(functions.migrate))
    expect(migration({ retentionDays: 1 })).toEqual(migration({}))
    const cluster = { ...(exampleConfig().cluster as object), schema: 'billing' }
    expect(migration({ cluster })).toEqual({ ...migration({}), OUTBOX_SCHEMA: 'billing' })
  })

  it('comes before any change of another function, its rights or its schedule: one that fails leaves the relay as it was', () => {
    const template = exampleTemplate()
    const [migration] = Object.keys(resourcesOf(template, 'Custom::OutboxMigration'))
    for (const name of ['Relay', 'Cleanup', 'Monitor']) {
      expect(resource(template, 'AWS::Lambda::Function', `Outbox${name}Function`).DependsOn).toContain(migration)
      expect(resource(template, 'AWS::IAM::Policy', `Outbox${name}RoleDefaultPolicy`).DependsOn).toContain(migration)
    }
    for (const id of ['OutboxRelaySchedule', 'OutboxMonitorSchedule', 'OutboxCleanupSchedule'])
      expect(resource(template, 'AWS::Scheduler::Schedule', id).DependsOn).toContain(migration)
  })

  it('has its rights when it begins, is not called again when it fails, and waits for nothing that waits for it', () => {
    const template = exampleTemplate()
    const { DependsOn } = resource(template, 'Custom::OutboxMigration', 'OutboxMigration')
    for (const id of ['RoleDefaultPolicy', 'FunctionEventInvokeConfig'])
      expect(DependsOn).toContainEqual(expect.stringMatching(new RegExp(`^OutboxMigrate${id}`)))
    const [migration] = Object.keys(resourcesOf(template, 'Custom::OutboxMigration'))
    for (const { DependsOn: earlier } of [
      resource(template, 'AWS::Lambda::Function', functions.migrate),
      resource(template, 'AWS::IAM::Policy', 'OutboxMigrateRoleDefaultPolicy'),
    ])
      expect(earlier ?? []).not.toContain(migration)
  })
})

/** As the template has them, without what every function gets. */
function environmentWithoutOptions(functionId: string): Readonly<Record<string, unknown>> {
  const { Environment } = resource(exampleTemplate(), 'AWS::Lambda::Function', functionId).Properties
  const { Variables } = Environment as { readonly Variables: Readonly<Record<string, unknown>> }
  return Object.fromEntries(Object.entries(Variables).filter(([name]) => name !== 'NODE_OPTIONS'))
}

describe('the alarm on backlog age', () => {
  it('reads what the monitor measures, and takes silence for a fault', () => {
    exampleTemplate().hasResourceProperties('AWS::CloudWatch::Alarm', {
      Namespace: 'OutboxRelay',
      MetricName: 'BacklogAge',
      Dimensions: [{ Name: 'service', Value: 'orders' }],
      Statistic: 'Maximum',
      Period: 60,
      Threshold: 60,
      ComparisonOperator: 'GreaterThanThreshold',
      DatapointsToAlarm: 3,
      EvaluationPeriods: 5,
      TreatMissingData: 'breaching',
      AlarmActions: [{ Ref: Match.stringLikeRegexp('^OutboxAlarmTopic') }],
      OKActions: [{ Ref: Match.stringLikeRegexp('^OutboxAlarmTopic') }],
      AlarmDescription: Match.stringLikeRegexp('First command: .*docs/runbook\\.md'),
    })
  })

  it('does not begin to listen before the monitor ticks', () => {
    const template = exampleTemplate()
    const [schedule] = Object.keys(resourcesOf(template, 'AWS::Scheduler::Schedule')).filter((id) =>
      id.startsWith('OutboxMonitor'),
    )
    expect(resource(template, 'AWS::CloudWatch::Alarm', 'OutboxBacklogAgeAlarm').DependsOn).toContain(schedule)
  })

  it('goes to a topic whose key and policy let the alarms of this account in, and nobody in the clear', () => {
    const template = exampleTemplate()
    const ofThisAccount = {
      StringEquals: { 'aws:SourceAccount': '111122223333' },
      ArnLike: { 'aws:SourceArn': 'arn:aws:cloudwatch:eu-central-1:111122223333:alarm:*' },
    }
    const cloudWatch = { Service: 'cloudwatch.amazonaws.com' }
    template.hasResourceProperties('AWS::KMS::Key', {
      EnableKeyRotation: true,
      KeyPolicy: {
        Statement: Match.arrayWith([
          {
            Effect: 'Allow',
            Principal: cloudWatch,
            Action: ['kms:Decrypt', 'kms:GenerateDataKey'],
            Resource: '*',
            Condition: ofThisAccount,
          },
        ]),
      },
    })
    template.hasResourceProperties('AWS::SNS::Topic', { KmsMasterKeyId: Match.anyValue() })
    const { Properties } = resource(template, 'AWS::SNS::TopicPolicy', 'OutboxAlarmTopic')
    expect((Properties.PolicyDocument as { readonly Statement: unknown }).Statement).toEqual([
      expect.objectContaining({
        Effect: 'Deny',
        Principal: '*',
        Action: 'sns:Publish',
        Condition: { Bool: { 'aws:SecureTransport': 'false' } },
      }),
      expect.objectContaining({ Effect: 'Allow', Principal: cloudWatch, Action: 'sns:Publish', Condition: ofThisAccount }),
    ])
  })

  it('is mailed to the address given, or sent to the topic given instead of a new one', () => {
    exampleTemplate({ alarms: { email: 'on-call@example.com', backlogAgeSeconds: 120 } }).hasResourceProperties(
      'AWS::SNS::Subscription',
      {
        Protocol: 'email',
        Endpoint: 'on-call@example.com',
      },
    )
    const topicArn = 'arn:aws:sns:eu-central-1:111122223333:on-call'
    const template = exampleTemplate({ alarms: { topicArn } })
    template.resourceCountIs('AWS::SNS::Topic', 0)
    template.resourceCountIs('AWS::KMS::Key', 0)
    template.hasResourceProperties('AWS::CloudWatch::Alarm', { AlarmActions: [topicArn], OKActions: [topicArn] })
  })
})
