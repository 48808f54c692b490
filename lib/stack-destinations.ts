import { Arn, ArnFormat, Duration } from 'aws-cdk-lib'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { RegionInfo } from 'aws-cdk-lib/region-info'
import type { Construct } from 'constructs'
import { createBus, CreatedQueue, CreatedTopic } from './created-destinations.js'
import { OutboxDestination } from './destination.js'
import { queueDefaults } from './stack-config-defaults.js'
import type { StackConfig } from './stack-config-schema.js'

type Destination = StackConfig['destinations'][string]
type QueueDestination = Extract<Destination, { readonly type: 'sqs' }>
type TopicDestination = Extract<Destination, { readonly type: 'sns' }>

/** One destination of the configuration: imported, or made in the scope. */
export function destinationOf(scope: Construct, name: string, destination: Destination): OutboxDestination {
  const options = { format: destination.format, maxBytes: destination.maxBytes }
  const id = `Destination-${name}`
  switch (destination.type) {
    case 'sqs':
      return OutboxDestination.queue(queueOf(scope, id, destination), options)
    case 'sns':
      return OutboxDestination.topic(topicOf(scope, id, destination), options)
    case 'eventbridge': {
      const { eventBusArn } = destination
      const bus = eventBusArn === undefined ? createBus(scope, id) : EventBus.fromEventBusArn(scope, id, eventBusArn)
      return OutboxDestination.eventBus(bus, options)
    }
  }
}

function queueOf(scope: Construct, id: string, { queueArn, keyArn, create }: QueueDestination) {
  if (queueArn !== undefined) return Queue.fromQueueAttributes(scope, id, { queueArn, keyArn, queueUrl: queueUrl(queueArn) })
  const chosen = { ...queueDefaults, ...create }
  return new CreatedQueue(scope, id, {
    order: chosen.order,
    maxReceiveCount: chosen.maxReceiveCount,
    visibilityTimeout: Duration.seconds(chosen.visibilityTimeoutSeconds),
    retention: Duration.days(chosen.retentionDays),
  }).queue
}

function topicOf(scope: Construct, id: string, { topicArn, keyArn, create }: TopicDestination) {
  if (topicArn !== undefined) return Topic.fromTopicAttributes(scope, id, { topicArn, keyArn })
  return new CreatedTopic(scope, id, { order: create?.order }).topic
}

function queueUrl(queueArn: string): string {
  const { account, region, resource } = Arn.split(queueArn, ArnFormat.NO_RESOURCE_NAME)
  const suffix = RegionInfo.get(region ?? '').domainSuffix ?? 'amazonaws.com'
  return `https://sqs.${region ?? ''}.${suffix}/${account ?? ''}/${resource}`
}
