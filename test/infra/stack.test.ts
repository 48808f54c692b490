import { Match } from 'aws-cdk-lib/assertions'
import { describe, expect, it } from 'vitest'
import { parseSettings } from '../../src/config/parse.js'
import { cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../../src/config/settings.js'
import { environmentOf, exampleTemplate, resource, resourcesOf } from './synthesis.js'

const functions = {
  relay: 'OutboxRelayFunction',
  cleanup: 'OutboxCleanupFunction',
  monitor: 'OutboxMonitorFunction',
  migrate: 'OutboxMigrateFunction',
}

describe('the four functions', () => {
  it('run on Node 24 and arm64, each with a log group that forgets', () => {
    const template = exampleTemplate()
    for (const id of Object.values(functions)) {
      const { Properties } = resource(template, 'AWS::Lambda::Function', id)
      expect(Properties).toMatchObject({ Runtime: 'nodejs24.x', Architectures: ['arm64'], Handler: 'index.handler' })
      expect(Properties.LoggingConfig).toEqual({ LogGroup: { Ref: expect.stringMatching(/^Outbox\w+Logs/) as string } })
    }
    const groups = Object.values(resourcesOf(template, 'AWS::Logs::LogGroup'))
    expect(groups.map(({ Properties }) => Properties)).toEqual(Array.from({ length: 4 }, () => ({ RetentionInDays: 30 })))
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
    const where = {
      resourceArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:orders',
      secretArn: 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders-outbox-a1B2c3',
      database: 'orders',
      schema: 'public',
      installation: 'orders',
    }
    expect(parseSettings(relaySettings, environmentOf(template, functions.relay))).toMatchObject({
      ...where,
      source: 'orders',
      destinations: {
        bus: { type: 'eventbridge', eventBusName: 'arn:aws:events:eu-central-1:111122223333:event-bus/orders' },
        billing: { type: 'sqs', queueUrl: 'https://sqs.eu-central-1.amazonaws.com/111122223333/billing' },
        shipping: { type: 'sqs', queueUrl: 'https://sqs.eu-central-1.amazonaws.com/111122223333/shipping.fifo' },
      },
      routes: [
        { eventType: 'Invoice*', to: 'billing' },
        { eventType: 'Shipment*', to: 'shipping' },
      ],
      defaultDestination: 'bus',
      profile: 'continuous',
      maxAttempts: 4,
    })
    expect(parseSettings(cleanupSettings, environmentOf(template, functions.cleanup))).toMatchObject({
      ...where,
      retentionSeconds: 43_200,
      failedRetentionSeconds: 2_592_000,
    })
    expect(parseSettings(monitorSettings, environmentOf(template, functions.monitor))).toEqual(where)
    expect(parseSettings(migrateSettings, environmentOf(template, functions.migrate))).toMatchObject({
      ...where,
      migrateSeconds: 300,
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
    expect(schedules).toHaveLength(3)
    for (const { Properties } of schedules) {
      expect(Properties.Target).toMatchObject({ RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 } })
      expect(Properties.FlexibleTimeWindow).toEqual({ Mode: 'OFF' })
    }
    const invocations = Object.values(resourcesOf(template, 'AWS::Lambda::EventInvokeConfig'))
    expect(invocations).toHaveLength(3)
    for (const { Properties } of invocations)
      expect(Properties).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60, Qualifier: '$LATEST' })
  })

  it('wake the cluster once for relay and monitor in profile drain', () => {
    const template = exampleTemplate({ profile: 'drain', tickMinutes: 15, alarms: {} })
    const expressions = ['OutboxRelaySchedule', 'OutboxMonitorSchedule'].map(
      (id) => resource(template, 'AWS::Scheduler::Schedule', id).Properties.ScheduleExpression,
    )
    expect(expressions).toEqual(['cron(0/15 * * * ? *)', 'cron(0/15 * * * ? *)'])
    template.hasResourceProperties('AWS::CloudWatch::Alarm', { Threshold: 1800 })
  })
})

describe('the migration', () => {
  it('runs before any other function or schedule changes, and waits longer than the function may take', () => {
    const template = exampleTemplate()
    const [migration] = Object.keys(resourcesOf(template, 'Custom::Trigger'))
    const trigger = resource(template, 'Custom::Trigger', 'OutboxMigration')
    expect(trigger.Properties).toMatchObject({
      InvocationType: 'RequestResponse',
      ExecuteOnHandlerChange: true,
      Timeout: '345000',
    })
    expect(trigger.Properties.HandlerArn).toEqual({
      Ref: expect.stringMatching(/^OutboxMigrateFunctionCurrentVersion/) as string,
    })
    for (const id of [functions.relay, functions.cleanup, functions.monitor])
      expect(resource(template, 'AWS::Lambda::Function', id).DependsOn).toContain(migration)
    for (const { DependsOn } of Object.values(resourcesOf(template, 'AWS::Scheduler::Schedule')))
      expect(DependsOn).toContain(migration)
    expect(resource(template, 'AWS::Lambda::Function', functions.migrate).DependsOn ?? []).not.toContain(migration)
  })
})

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
