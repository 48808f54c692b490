import { setTimeout as sleep } from 'node:timers/promises'
import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type Message,
  type SQSClient,
} from '@aws-sdk/client-sqs'

/** An order as its event carries it. */
export interface ShippedOrder {
  readonly orderId: string
  /** null: a guest's. */
  readonly customer: number | null
  readonly customerOrder: number | null
}

/** Gives an order its effect, once; answers whether this delivery was the one that did. */
export type Ship = (eventId: string, order: ShippedOrder) => Promise<'handled' | 'handled-before'>

export interface ConsumerOptions {
  readonly sqs: SQSClient
  readonly queueUrls: readonly string[]
  /** Receivers per queue. A FIFO queue gives a group to one of them at a time, so order does not depend on this. */
  readonly receivers: number
  readonly ship: Ship
  readonly log: (line: string) => void
}

export interface Consumer {
  /** Deliveries that the inbox recognised. */
  readonly duplicates: () => number
  /** Milliseconds since the last delivery, or since the start. */
  readonly quietMs: () => number
  /** Messages that are in the queues, received ones that are not deleted included. */
  readonly waiting: () => Promise<number>
  /** Ends the receivers; what they hold is shipped or goes back. */
  readonly stop: () => Promise<void>
}

/** Longer than ten shipments take; what a receiver could not ship comes back after it. */
const visibilitySeconds = 20
const waitSeconds = 1
/** After a refused request. */
const pauseMs = 250

/**
 * Starts receivers that ship what arrives, one message after the other, and delete what was shipped.
 *
 * @example
 * const consumer = startConsumer({ sqs, queueUrls: [url], receivers: 2, ship, log })
 * await consumer.stop()
 */
export function startConsumer(options: ConsumerOptions): Consumer {
  const { sqs, queueUrls, receivers, ship, log } = options
  const stopping = new AbortController()
  let duplicates = 0
  let lastDeliveryMs = performance.now()

  /** Answers those that are done. The first one that fails ends it: a later one of its group must not overtake it. */
  const handle = async (messages: readonly Message[]): Promise<Message[]> => {
    const done: Message[] = []
    try {
      for (const message of messages) {
        lastDeliveryMs = performance.now()
        const event = eventOf(message)
        if ((await ship(event.id, event.data)) === 'handled-before') duplicates++
        done.push(message)
      }
    } catch (error) {
      log(`consumer: not shipped: ${error instanceof Error ? error.message : String(error)}`)
    }
    return done
  }

  const receive = async (queueUrl: string): Promise<void> => {
    const request = {
      QueueUrl: queueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: waitSeconds,
      VisibilityTimeout: visibilitySeconds,
    }
    while (!stopping.signal.aborted) {
      try {
        const { Messages: messages = [] } = await sqs.send(new ReceiveMessageCommand(request), { abortSignal: stopping.signal })
        const done = await handle(messages)
        if (done.length === 0) continue
        const entries = done.map((message, index) => ({ Id: String(index), ReceiptHandle: message.ReceiptHandle }))
        await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }))
      } catch (error) {
        if (stopping.signal.aborted) return
        // what was received comes back when its visibility ends, and the inbox knows what was shipped
        log(`consumer: ${error instanceof Error ? error.message : String(error)}`)
        await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      }
    }
  }

  const loops = queueUrls.flatMap((queueUrl) => Array.from({ length: receivers }, () => receive(queueUrl)))

  const inQueue = async (queueUrl: string): Promise<number> => {
    const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const
    const { Attributes: attributes = {} } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [...names] }),
    )
    return names.reduce((sum, name) => sum + Number(attributes[name] ?? 0), 0)
  }

  return {
    duplicates: () => duplicates,
    quietMs: () => performance.now() - lastDeliveryMs,
    waiting: async () => (await Promise.all(queueUrls.map(inQueue))).reduce((sum, count) => sum + count, 0),
    stop: async () => {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

interface ReceivedEvent {
  readonly id: string
  readonly data: ShippedOrder
}

/** The CloudEvents object: the body itself, or the `detail` of what a rule of the bus puts into its target queue. */
function eventOf(message: Message): ReceivedEvent {
  const body = JSON.parse(message.Body ?? '') as ReceivedEvent | { readonly detail: ReceivedEvent }
  return 'detail' in body ? body.detail : body
}
