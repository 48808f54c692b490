import type { IEventBus } from 'aws-cdk-lib/aws-events'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { IKey } from 'aws-cdk-lib/aws-kms'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import type { IQueue } from 'aws-cdk-lib/aws-sqs'
import type { Destination, MessageFormat } from '../src/core/destination.js'

/** What holds for every kind of destination. */
export interface OutboxDestinationOptions {
  /**
   * `cloudevents`: a CloudEvents 1.0 object around the payload; `raw`: the payload alone.
   *
   * @default 'cloudevents'
   */
  readonly format?: MessageFormat
  /**
   * Bytes one request may carry, 1,024 to 1,048,576.
   *
   * @default - what the queue or topic itself says (its MaximumMessageSize), or the limit of EventBridge
   */
  readonly maxBytes?: number
}

/**
 * Where the relay may send events: the settings it gets, and the rights it needs for them, on that one resource.
 *
 * @example
 * new OutboxRelay(this, 'Outbox', { cluster, destinations: { orders: OutboxDestination.queue(queue) }, defaultDestination: 'orders' })
 */
export class OutboxDestination {
  /** An SQS queue, standard or FIFO. */
  static queue(queue: IQueue, options: OutboxDestinationOptions = {}): OutboxDestination {
    return new OutboxDestination(
      { type: 'sqs', queueUrl: queue.queueUrl, ...options },
      queue.queueArn,
      queue.env.region,
      [
        new PolicyStatement({ actions: ['sqs:SendMessage', 'sqs:GetQueueAttributes'], resources: [queue.queueArn] }),
        ...sealing(queue.encryptionMasterKey, `sqs.${queue.env.region}.amazonaws.com`),
      ],
      queue.fifo,
    )
  }

  /** A bus of EventBridge. */
  static eventBus(bus: IEventBus, options: OutboxDestinationOptions = {}): OutboxDestination {
    return new OutboxDestination(
      { type: 'eventbridge', eventBusName: bus.eventBusArn, ...options },
      bus.eventBusArn,
      bus.env.region,
      // PutEvents answers success for a bus that does not exist: the relay looks first
      [new PolicyStatement({ actions: ['events:PutEvents', 'events:DescribeEventBus'], resources: [bus.eventBusArn] })],
      false,
      bus,
    )
  }

  /** An SNS topic, standard or FIFO. */
  static topic(topic: ITopic, options: OutboxDestinationOptions = {}): OutboxDestination {
    return new OutboxDestination(
      { type: 'sns', topicArn: topic.topicArn, ...options },
      topic.topicArn,
      topic.env.region,
      [
        new PolicyStatement({ actions: ['sns:Publish', 'sns:GetTopicAttributes'], resources: [topic.topicArn] }),
        ...sealing(topic.masterKey, `sns.${topic.env.region}.amazonaws.com`),
      ],
      topic.fifo,
    )
  }

  private constructor(
    /** As the relay reads it. */
    readonly settings: Destination,
    readonly arn: string,
    readonly region: string,
    /** What the relay's role gets for it. */
    readonly statements: readonly PolicyStatement[],
    /** Whether it keeps the order of each group of messages. */
    readonly fifo = false,
    /** The bus, if it is one. */
    readonly bus?: IEventBus,
  ) {}
}

/** A queue or topic with a customer-managed key: who sends needs a data key of it, through that service alone. */
function sealing(key: IKey | undefined, service: string): readonly PolicyStatement[] {
  if (key === undefined) return []
  return [
    new PolicyStatement({
      actions: ['kms:GenerateDataKey', 'kms:Decrypt'],
      resources: [key.keyArn],
      conditions: { StringEquals: { 'kms:ViaService': service } },
    }),
  ]
}
