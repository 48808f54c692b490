import { Duration, type Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Tracing } from 'aws-cdk-lib/aws-lambda'
import { AuroraPostgresEngineVersion, ClusterInstance, DatabaseCluster, DatabaseClusterEngine } from 'aws-cdk-lib/aws-rds'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs'
import { Vpc } from 'aws-cdk-lib/aws-ec2'
import { describe, expect, it } from 'vitest'
import { OutboxDestination, OutboxRelay, type OutboxRelayProps } from '../../lib/index.js'
import { ConfigurationError } from '../../src/core/errors.js'
import { environmentOf, otherStack, resource, resourcesOf } from './synthesis.js'

describe('the construct in a stack of others', () => {
  it('takes a cluster, a secret and destinations that exist only after deployment', () => {
    const stack = otherStack()
    const cluster = serverlessCluster(stack)
    const key = new Key(stack, 'Key')
    const queue = new Queue(stack, 'Billing', { fifo: true, encryption: QueueEncryption.KMS, encryptionMasterKey: key })
    new OutboxRelay(stack, 'Outbox', {
      cluster: { clusterArn: cluster.clusterArn, secret: cluster.secret!, database: 'shop', schema: 'billing' },
      destinations: {
        bus: OutboxDestination.eventBus(new EventBus(stack, 'Bus')),
        billing: OutboxDestination.queue(queue, { format: 'raw' }),
        news: OutboxDestination.topic(new Topic(stack, 'News')),
      },
      defaultDestination: 'bus',
    })
    const template = Template.fromStack(stack)

    const environment = environmentOf(template, 'OutboxRelayFunction')
    expect(environment).toMatchObject({
      OUTBOX_CLUSTER_ARN: { 'Fn::Join': expect.anything() as unknown },
      OUTBOX_DATABASE: 'shop',
      OUTBOX_SCHEMA: 'billing',
      OUTBOX_INSTALLATION: 'shop',
    })
    const destinations = JSON.stringify(stack.resolve(environment.OUTBOX_DESTINATIONS))
    for (const part of ['"Ref":"Billing', '"Ref":"News', '"Bus', 'raw']) expect(destinations).toContain(part)
    template.hasResourceProperties('AWS::IAM::Policy', {
      PolicyDocument: {
        Statement: Match.arrayWith([
          {
            Effect: 'Allow',
            Action: ['sqs:SendMessage', 'sqs:GetQueueAttributes'],
            Resource: { 'Fn::GetAtt': [Match.stringLikeRegexp('^Billing'), 'Arn'] },
          },
          {
            Effect: 'Allow',
            Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
            Resource: { 'Fn::GetAtt': [Match.stringLikeRegexp('^Key'), 'Arn'] },
            Condition: { StringEquals: { 'kms:ViaService': 'sqs.eu-central-1.amazonaws.com' } },
          },
          {
            Effect: 'Allow',
            Action: ['sns:Publish', 'sns:GetTopicAttributes'],
            Resource: { Ref: Match.stringLikeRegexp('^News') },
          },
        ]),
      },
    })
  })

  it('shows its functions, its topic, its alarm and its metric', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, { installation: 'shop-eu' }))
    expect(stack.resolve(outbox.metricBacklogAge({ period: Duration.minutes(1) }).toMetricConfig())).toMatchObject({
      metricStat: {
        namespace: 'OutboxRelay',
        metricName: 'BacklogAge',
        dimensions: [{ name: 'service', value: 'shop-eu' }],
        statistic: 'Maximum',
      },
    })
    for (const shown of [outbox.relayFunction, outbox.cleanupFunction, outbox.monitorFunction, outbox.migrateFunction])
      expect(stack.resolve(shown?.functionArn)).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^Outbox/), 'Arn'] })
    expect(stack.resolve(outbox.alarmTopic.topicArn)).toEqual({ Ref: expect.stringMatching(/^OutboxAlarmTopic/) as string })
    expect(outbox.alarms.backlogAge.node.path).toBe('shop/Outbox/BacklogAgeAlarm')
  })

  it('takes destinations that are added later, their rights included, and refuses a name that is taken', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', { ...propsOf(stack, {}), defaultDestination: 'later' })
    const queue = Queue.fromQueueArn(stack, 'Later', 'arn:aws:sqs:eu-central-1:111122223333:later')
    outbox.addDestination('later', OutboxDestination.queue(queue))
    expect(() => {
      outbox.addDestination('bus', OutboxDestination.queue(queue))
    }).toThrow(
      /^destinations\.bus is there already: arn:aws:events:eu-central-1:111122223333:event-bus\/shop\. Choose another name$/,
    )

    const template = Template.fromStack(stack)
    const destinations = environmentOf(template, 'OutboxRelayFunction').OUTBOX_DESTINATIONS
    expect(JSON.stringify(stack.resolve(destinations))).toMatch(/bus.*later/)
    template.hasResourceProperties('AWS::IAM::Policy', {
      PolicyName: Match.stringLikeRegexp('^OutboxRelayRole'),
      PolicyDocument: {
        Statement: Match.arrayWith([
          {
            Effect: 'Allow',
            Action: ['sqs:SendMessage', 'sqs:GetQueueAttributes'],
            Resource: 'arn:aws:sqs:eu-central-1:111122223333:later',
          },
        ]),
      },
    })
  })

  it('looks at a destination that is added as it does at the others', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, {}))
    const add = (name: string, region = 'eu-central-1') => {
      const queueArn = `arn:aws:sqs:${region}:111122223333:billing`
      outbox.addDestination(name, OutboxDestination.queue(Queue.fromQueueArn(stack, `Queue-${region}-${name}`, queueArn)))
    }
    expect(() => {
      add('my queue')
    }).toThrow(/^destinations\.my queue is not a good name: it must be 1 to 64 letters, digits/)
    expect(() => {
      add('far', 'us-east-1')
    }).toThrow(
      /^destinations\.far is arn:aws:sqs:us-east-1:111122223333:billing, in us-east-1, but the cluster and the relay are in/,
    )
    expect(() => {
      for (let i = 0; i < 100; i++) add(`billing-${i}`)
    }).toThrow(
      /^the settings take \d+ bytes of environment variables, and Lambda allows 4096\. The largest is OUTBOX_DESTINATIONS/,
    )
  })

  it('fails synthesis, and not before, if a route leads to nothing or there is no destination at all', () => {
    const stack = otherStack()
    new OutboxRelay(stack, 'Lost', propsOf(stack, { routes: [{ eventType: '*', to: 'nowhere' }] }))
    new OutboxRelay(stack, 'None', { ...propsOf(stack, { installation: 'none' }, 'None'), destinations: {} })
    const synth = () => Template.fromStack(stack)
    expect(synth).toThrow(
      /\[shop\/Lost\] routes\[0\]\.to is "nowhere", which is not a destination\. Configured are: bus\. Add it/,
    )
    expect(synth).toThrow(/\[shop\/None\] destinations names none\. Name at least one/)
  })

  it('shows its metrics with the statistic that suits each', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, {}))
    const shown = [
      outbox.metricBacklogAge(),
      outbox.metricBacklogDepth(),
      outbox.metricFailedEvents(),
      outbox.metricPublished('bus'),
      outbox.metricDeliveryLatency('bus'),
      outbox.metric('Retried', { destination: 'bus', period: Duration.minutes(1) }),
    ].map(({ metricName, statistic, period, namespace, dimensions }) => [
      [namespace, metricName, statistic, period.toSeconds()],
      Object.keys(dimensions ?? {}),
    ])
    expect(shown).toEqual([
      [['OutboxRelay', 'BacklogAge', 'Maximum', 300], ['service']],
      [['OutboxRelay', 'BacklogDepth', 'Maximum', 300], ['service']],
      [['OutboxRelay', 'FailedEvents', 'Maximum', 300], ['service']],
      [
        ['OutboxRelay', 'Published', 'Sum', 300],
        ['service', 'destination'],
      ],
      [
        ['OutboxRelay', 'DeliveryLatency', 'p99', 300],
        ['service', 'destination'],
      ],
      [
        ['OutboxRelay', 'Retried', 'Sum', 60],
        ['service', 'destination'],
      ],
    ])
  })

  it('refuses a metric that nothing would be found under', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, {}))
    expect(() => outbox.metric('Published')).toThrow('destination is missing: Published is split by destination. Name one')
    expect(() => outbox.metric('BacklogAge', { destination: 'bus' })).toThrow(
      'destination is "bus", but BacklogAge is not split by destination. Leave it out',
    )
  })

  it('works as several relays, each with a schedule of its own, and reserves concurrency if it is told to', () => {
    const stack = otherStack()
    new OutboxRelay(stack, 'Outbox', propsOf(stack, { relays: 3, reservedConcurrency: 6, tracing: Tracing.ACTIVE }))
    const template = Template.fromStack(stack)
    const schedules = Object.entries(resourcesOf(template, 'AWS::Scheduler::Schedule')).filter(([id]) =>
      /^OutboxRelaySchedule\d?[0-9A-F]{8}$/.test(id),
    )
    expect(schedules).toHaveLength(3)
    for (const [, { Properties }] of schedules)
      expect(Properties).toMatchObject({
        ScheduleExpression: 'rate(1 minute)',
        Target: { Arn: { 'Fn::GetAtt': [expect.stringMatching(/^OutboxRelayFunction/), 'Arn'] } },
      })
    const { Properties } = resource(template, 'AWS::Lambda::Function', 'OutboxRelayFunction')
    expect(Properties).toMatchObject({ ReservedConcurrentExecutions: 6, TracingConfig: { Mode: 'Active' } })
    const monitor = resource(template, 'AWS::Lambda::Function', 'OutboxMonitorFunction')
    expect(monitor.Properties.ReservedConcurrentExecutions).toBeUndefined()
  })

  it('leaves a schema that is managed elsewhere alone: nothing migrates, nothing may', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, { schemaManagement: 'managed-elsewhere' }))
    expect(outbox.migrateFunction).toBeUndefined()
    const template = Template.fromStack(stack)
    template.resourceCountIs('Custom::OutboxMigration', 0)
    expect(JSON.stringify(template.toJSON())).not.toMatch(/migrate|rds-data:BeginTransaction/i)
  })

  it('migrates only when the instances of a cluster of the same app are there', () => {
    const stack = otherStack()
    const cluster = serverlessCluster(stack)
    new OutboxRelay(stack, 'Outbox', {
      ...propsOf(stack, {}),
      cluster: { clusterArn: cluster.clusterArn, secret: cluster.secret!, database: 'shop', waitFor: cluster },
    })
    const { DependsOn } = resource(Template.fromStack(stack), 'Custom::OutboxMigration', 'OutboxMigration')
    expect(DependsOn).toEqual(expect.arrayContaining([expect.stringMatching(/^Databasewriter/)]))
  })

  it('gives the relay longer passes and its function longer still', () => {
    const stack = otherStack()
    new OutboxRelay(stack, 'Outbox', propsOf(stack, { relay: { passSeconds: 200 }, tick: Duration.minutes(2) }))
    const template = Template.fromStack(stack)
    expect(resource(template, 'AWS::Lambda::Function', 'OutboxRelayFunction').Properties.Timeout).toBe(215)
    expect(environmentOf(template, 'OutboxRelayFunction').OUTBOX_PASS_SECONDS).toBe('200')
    template.hasResourceProperties('AWS::CloudWatch::Alarm', { Period: 120, Threshold: 60 })
  })

  it('names the variable that takes most of the environment when Lambda would refuse its size', () => {
    const stack = otherStack()
    const routes = Array.from({ length: 80 }, (_, i) => ({
      eventType: `com.example.shop.orders.OrderEventNumber${i}`,
      to: 'bus',
    }))
    expect(() => new OutboxRelay(stack, 'Outbox', propsOf(stack, { routes }))).toThrow(
      /^the settings take \d+ bytes of environment variables, and Lambda allows 4096\. The largest is OUTBOX_ROUTES with \d+: use fewer/,
    )
  })
})

describe('a mistake in properties', () => {
  const mistakes: readonly (readonly [mistake: string, changes: Partial<OutboxRelayProps>, message: string])[] = [
    [
      'a tick that no schedule keeps',
      { tick: Duration.seconds(90) },
      'tickMinutes is 1.5, but schedules tick in whole minutes, 1 to 60. Set it to one of them',
    ],
    [
      'a pass shorter than the tick',
      { tick: Duration.minutes(2) },
      'relay.passSeconds is 75, not longer than the tick of 120 s: between two passes nobody would relay. Set it to 135 or shorten tickMinutes',
    ],
    ['no relay', { relays: 0 }, 'relays is 0, but there can be 1 to 8. Set it to one of them'],
    ['half a relay', { relays: 1.5 }, 'relays is 1.5, but there can be 1 to 8. Set it to one of them'],
    ['too many relays', { relays: 9 }, 'relays is 9, but there can be 1 to 8. Set it to one of them'],
    [
      'too little concurrency for two overlapping passes',
      { reservedConcurrency: 1 },
      'reservedConcurrency is 1, but the relay of up to 90 s every 60 s may need 2 at once: the others would be refused, and nobody would relay meanwhile. Set it to 2 or more, or leave it out',
    ],
    [
      'too little concurrency for the overlap of several',
      { relays: 4, reservedConcurrency: 7 },
      'reservedConcurrency is 7, but 4 relays of up to 90 s every 60 s may need 8 at once: the others would be refused, and nobody would relay meanwhile. Set it to 8 or more, or leave it out',
    ],
  ]

  it.each(mistakes)('%s is refused', (_, changes, message) => {
    const construct = (): unknown => {
      const stack = otherStack()
      return new OutboxRelay(stack, 'Outbox', propsOf(stack, changes))
    }
    expect(construct).toThrow(ConfigurationError)
    expect(construct).toThrow(expect.objectContaining({ message }) as Error)
  })

  it('in profile drain one relay is enough concurrency: its passes do not overlap', () => {
    const stack = otherStack()
    new OutboxRelay(stack, 'Outbox', propsOf(stack, { profile: 'drain', reservedConcurrency: 1 }))
  })
})

describe('a warning', () => {
  const warnings = (stack: Stack): readonly string[] =>
    Annotations.fromStack(stack)
      .findWarning('*', Match.anyValue())
      .map(({ entry }) => entry.data as string)

  it('says that FIFO keeps no order without ordering keys, until a route shows that there are some', () => {
    const stack = otherStack()
    const fifo = OutboxDestination.queue(Queue.fromQueueArn(stack, 'Fifo', 'arn:aws:sqs:eu-central-1:111122223333:a.fifo'))
    const route = { eventType: 'Shipment*', to: 'shipping' }
    new OutboxRelay(stack, 'Keyed', {
      ...propsOf(stack, { routes: [{ ...route, onFailure: 'block' }] }),
      destinations: { shipping: fifo },
    })
    expect(warnings(stack)).toEqual([])

    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, { installation: 'other', routes: [route] }, 'Other'))
    outbox.addDestination('shipping', fifo)
    expect(warnings(stack)).toEqual([
      'destinations.shipping is FIFO, but no route says that its events have an ordering key, and without one FIFO keeps no order. ' +
        'Write an ordering key with each of them, and set onFailure ("block" or "skip") on a route to shipping [ack: aurora-outbox-relay:fifoWithoutOrderingKey]',
    ])
  })

  it('says that a relay without pauses never lets a cluster pause that could', () => {
    const stack = otherStack()
    const props = propsOf(stack, {})
    const cluster = { ...props.cluster, minCapacity: 0 }
    new OutboxRelay(stack, 'Drained', { ...props, cluster, profile: 'drain' })
    new OutboxRelay(stack, 'Awake', { ...props, cluster: { ...cluster, minCapacity: 0.5 } })
    expect(warnings(stack)).toEqual([])
    new OutboxRelay(stack, 'Outbox', { ...props, cluster })
    expect(warnings(stack)).toEqual([
      'profile is "continuous", but the minimum capacity of the cluster is 0, so that it can pause: the relay never lets it. ' +
        'Set profile to "drain", or the minimum capacity to 0.5 [ack: aurora-outbox-relay:continuousKeepsClusterAwake]',
    ])
  })
})

const serverlessCluster = (stack: Stack): DatabaseCluster =>
  new DatabaseCluster(stack, 'Database', {
    engine: DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.VER_17_5 }),
    writer: ClusterInstance.serverlessV2('writer'),
    vpc: new Vpc(stack, 'Vpc', { availabilityZones: ['eu-central-1a', 'eu-central-1b'] }),
    enableDataApi: true,
  })

function propsOf(stack: Stack, changes: Partial<OutboxRelayProps>, id = ''): OutboxRelayProps {
  return {
    cluster: {
      clusterArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:shop',
      secret: Secret.fromSecretCompleteArn(
        stack,
        `${id}Secret`,
        'arn:aws:secretsmanager:eu-central-1:111122223333:secret:shop-a1B2c3',
      ),
      database: 'shop',
    },
    destinations: { bus: OutboxDestination.eventBus(EventBus.fromEventBusName(stack, `${id}Bus`, 'shop')) },
    ...changes,
  }
}
