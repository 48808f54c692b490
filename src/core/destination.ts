/** `cloudevents`: a CloudEvents 1.0 object around the payload. `raw`: the payload alone. */
export type MessageFormat = 'cloudevents' | 'raw'

interface DestinationBase {
  /** Default `cloudevents`. */
  readonly format?: MessageFormat | undefined
  /**
   * Bytes one request may carry. It only lowers what the queue, the topic or the service says itself; a topic that says nothing,
   * or may not be asked, takes 262,144 without it.
   */
  readonly maxBytes?: number | undefined
}

/** An EventBridge bus, by name or ARN. */
export interface EventBridgeDestination extends DestinationBase {
  readonly type: 'eventbridge'
  readonly eventBusName: string
}

/** An SQS queue, standard or FIFO (its URL ends in `.fifo`). */
export interface SqsDestination extends DestinationBase {
  readonly type: 'sqs'
  readonly queueUrl: string
}

/** An SNS topic, standard or FIFO (its ARN ends in `.fifo`). */
export interface SnsDestination extends DestinationBase {
  readonly type: 'sns'
  readonly topicArn: string
}

export type Destination = EventBridgeDestination | SqsDestination | SnsDestination

/** Destination name -> where it is. */
export type Destinations = Readonly<Record<string, Destination>>
