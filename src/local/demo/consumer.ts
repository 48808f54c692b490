import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type Message,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { pause } from './pause.js'

/** An order as its event carries it. */
export interface ShippedOrder {
  readonly orderId: string
  /** null: a guest's. */
  readonly customer: number | null
  readonly customerOrder: number | null
}

/** The CloudEvents object, as far as the consumer reads it. */
export interface ReceivedEvent {
  readonly id: string
  readonly data: ShippedOrder
}

/** Gives all these orders their effect, in this order, or none of them; answers how many had it before. */
export type Ship = (events: readonly ReceivedEvent[]) => Promise<number>

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

const batchSize = 10
/** Longer than ten shipments take; what a receiver could not ship comes back after it. */
const visibilitySeconds = 20
const waitSeconds = 1
/** After a batch that was not full: the next one may be. */
const lingerMs = 250
/** After a refused request. */
const refusedMs = 250

/**
 * Starts receivers that ship what arrives, a batch in one transaction, and delete what was shipped.
 *
 * @example
 * const consumer = startConsumer({ sqs, queueUrls: [url], receivers: 2, ship, log })
 * await consumer.stop()
 */
export function startConsumer(options: ConsumerOptions): Consumer {
  const { sqs, queueUrls, receivers, ship, log } = options
  const stopping = new AbortController()
  const { signal } = stopping
  let duplicates = 0
  let lastDeliveryMs = performance.now()

  const receiveOnce = async (queueUrl: string): Promise<void> => {
    const { Messages: messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: batchSize,
        WaitTimeSeconds: waitSeconds,
        VisibilityTimeout: visibilitySeconds,
      }),
      { abortSignal: signal },
    )
    if (messages.length === 0) return
    lastDeliveryMs = performance.now()
    const handledBefore = await ship(messages.map(eventOf))
    duplicates += handledBefore // not `+= await`: another receiver may count meanwhile
    // lost between these two, the batch comes once more, and the inbox knows all of it
    const entries = messages.map((message, index) => ({ Id: String(index), ReceiptHandle: message.ReceiptHandle }))
    await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }))
    if (messages.length < batchSize) await pause(lingerMs, signal)
  }

  const receive = async (queueUrl: string): Promise<void> => {
    while (!signal.aborted) {
      await receiveOnce(queueUrl).catch(async (error: unknown) => {
        if (signal.aborted) return
        log(`consumer: not shipped: ${error instanceof Error ? error.message : String(error)}`)
        await pause(refusedMs, signal)
      })
    }
  }

  const loops = queueUrls.flatMap((queueUrl) => Array.from({ length: receivers }, () => receive(queueUrl)))

  const inQueue = async (queueUrl: string): Promise<number> => {
    const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const
    const request = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [...names] })
    const { Attributes: attributes = {} } = await sqs.send(request)
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

/** The body itself, or the `detail` of what a rule of the bus puts into its target queue. */
function eventOf(message: Message): ReceivedEvent {
  const body = JSON.parse(message.Body ?? '') as ReceivedEvent | { readonly detail: ReceivedEvent }
  return 'detail' in body ? body.detail : body
}
