import { Duration } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Key } from 'aws-cdk-lib/aws-kms'
import { AuroraPostgresEngineVersion, ClusterInstance, DatabaseCluster, DatabaseClusterEngine } from 'aws-cdk-lib/aws-rds'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs'
import { Vpc } from 'aws-cdk-lib/aws-ec2'
import { describe, expect, it } from 'vitest'
import { OutboxDestination, OutboxRelay, type OutboxRelayProps } from '../../lib/index.js'
import { environmentOf, otherStack, resource } from './synthesis.js'

describe('the construct in a stack of others', () => {
  it('takes a cluster, a secret and destinations that exist only after deployment', () => {
    const stack = otherStack()
    const cluster = new DatabaseCluster(stack, 'Database', {
      engine: DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.VER_17_5 }),
      writer: ClusterInstance.serverlessV2('writer'),
      vpc: new Vpc(stack, 'Vpc', { availabilityZones: ['eu-central-1a', 'eu-central-1b'] }),
      enableDataApi: true,
    })
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
      expect(stack.resolve(shown.functionArn)).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^Outbox/), 'Arn'] })
    expect(stack.resolve(outbox.alarmTopic.topicArn)).toEqual({ Ref: expect.stringMatching(/^OutboxAlarmTopic/) as string })
    expect(outbox.backlogAgeAlarm.node.path).toBe('shop/Outbox/BacklogAgeAlarm')
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

function propsOf(stack: ReturnType<typeof otherStack>, changes: Partial<OutboxRelayProps>): OutboxRelayProps {
  return {
    cluster: {
      clusterArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:shop',
      secret: Secret.fromSecretCompleteArn(
        stack,
        'Secret',
        'arn:aws:secretsmanager:eu-central-1:111122223333:secret:shop-a1B2c3',
      ),
      database: 'shop',
    },
    destinations: { bus: OutboxDestination.eventBus(EventBus.fromEventBusName(stack, 'Bus', 'shop')) },
    ...changes,
  }
}
