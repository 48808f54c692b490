import { Duration, RemovalPolicy } from 'aws-cdk-lib'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Key } from 'aws-cdk-lib/aws-kms'
import { FifoThroughputScope, Topic } from 'aws-cdk-lib/aws-sns'
import { DeduplicationScope, FifoThroughputLimit, Queue, QueueEncryption, type QueueProps } from 'aws-cdk-lib/aws-sqs'
import { Construct } from 'constructs'

export interface CreatedQueueProps {
  /** @default - a standard queue */
  readonly order?: 'fifo' | 'standard'
  /** Receptions after which a message goes to the dead-letter queue, 1 to 1000. */
  readonly maxReceiveCount: number
  /** How long a message that was received stays hidden from other consumers, 0 s to 12 h. */
  readonly visibilityTimeout: Duration
  /** How long a message is kept for its consumers, 1 minute to 14 days. */
  readonly retention: Duration
}

/**
 * A queue with a dead-letter queue. Both are sealed with keys of SQS, take no call in the clear, and stay when the stack is
 * removed or they are replaced: what they hold was published, and is in the outbox no more than its retention.
 */
export class CreatedQueue extends Construct {
  readonly queue: Queue
  readonly deadLetterQueue: Queue

  constructor(scope: Construct, id: string, props: CreatedQueueProps) {
    super(scope, id)
    const sealed: QueueProps = {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      removalPolicy: RemovalPolicy.RETAIN,
      ...(props.order === 'fifo' ? { fifo: true } : {}),
    }
    // the longest there is: a message keeps the age it had in the first queue
    this.deadLetterQueue = new Queue(this, 'DeadLetters', { ...sealed, retentionPeriod: Duration.days(14) })
    this.queue = new Queue(this, 'Queue', {
      ...sealed,
      visibilityTimeout: props.visibilityTimeout,
      retentionPeriod: props.retention,
      deadLetterQueue: { queue: this.deadLetterQueue, maxReceiveCount: props.maxReceiveCount },
      // an event's id is unique and stays in its group, so nothing needs the queue-wide limit of 300 requests a second
      ...(props.order === 'fifo'
        ? {
            deduplicationScope: DeduplicationScope.MESSAGE_GROUP,
            fifoThroughputLimit: FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
          }
        : {}),
    })
  }
}

/**
 * A topic with a key of its own, which takes no call in the clear. Its policy lets nobody in: who publishes needs rights of
 * this account for topic and key, as the relay has.
 */
export class CreatedTopic extends Construct {
  readonly topic: Topic

  constructor(scope: Construct, id: string, props: { readonly order?: 'fifo' | 'standard' | undefined }) {
    super(scope, id)
    const masterKey = new Key(this, 'Key', {
      description: 'Seals the events of an outbox on their way through a topic',
      enableKeyRotation: true,
      // it seals messages on their way, nothing that is kept
      removalPolicy: RemovalPolicy.DESTROY,
    })
    this.topic = new Topic(this, 'Topic', {
      masterKey,
      enforceSSL: true,
      ...(props.order === 'fifo' ? { fifo: true, fifoThroughputScope: FifoThroughputScope.MESSAGE_GROUP } : {}),
    })
  }
}

/**
 * A bus, sealed with a key that EventBridge owns. Nobody of another account may put events on it. Its rules, with their
 * dead-letter queues, are the consumers'.
 */
export const createBus = (scope: Construct, id: string): EventBus =>
  new EventBus(scope, id, { description: 'Events of an outbox' })
