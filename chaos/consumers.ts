import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
  type Message,
} from '@aws-sdk/client-sqs'
import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { DataApiDatabase } from '../src/data-api/database.js'
import { createInbox } from '../src/inbox/index.js'
import type { LocalStackDescription } from '../src/local/stack.js'

/** How often, and when first, an event was delivered. */
export interface Delivered {
  /** When its first message was accepted, by the queue's clock: one clock for all queues. */
  firstSentMs: number
  messages: number
}

const receiversPerQueue = 4
/** Longer than the inbox takes for ten events while the database is up; what it could not do comes again. */
const visibilitySeconds = 10

/** Consumers of every queue of the stack: each event takes effect through the inbox. */
export class Consumers {
  readonly delivered = new Map<string, Delivered>()
  readonly #seen = new Set<string>()
  readonly #client: SQSClient
  readonly #stop = new AbortController()
  readonly #loops: Promise<void>[]
  readonly #queueUrls: readonly string[]
  readonly #inbox

  constructor({ endpoint, region, queues }: LocalStackDescription, database: DataApiDatabase) {
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
    this.#client = new SQSClient({ endpoint, region, credentials, useQueueUrlAsEndpoint: false, md5: false })
    this.#inbox = createInbox({ database, schema: 'chaos' })
    this.#queueUrls = Object.values(queues)
    setMaxListeners(0, this.#stop.signal)
    this.#loops = this.#queueUrls.flatMap((url) => Array.from({ length: receiversPerQueue }, () => this.#receive(url)))
  }

  /** Messages that are in the queues, received ones that are not deleted included. */
  async waiting(): Promise<number> {
    const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const
    const counts = this.#queueUrls.map(async (QueueUrl) => {
      const { Attributes: attributes } = await this.#client.send(
        new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...names] }),
      )
      return names.reduce((sum, name) => sum + Number(attributes?.[name] ?? 0), 0)
    })
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#loops)
    this.#client.destroy()
  }

  async #receive(QueueUrl: string): Promise<void> {
    const abortSignal = this.#stop.signal
    while (!abortSignal.aborted) {
      try {
        const { Messages: messages = [] } = await this.#client.send(
          new ReceiveMessageCommand({
            QueueUrl,
            MaxNumberOfMessages: 10,
            WaitTimeSeconds: 2,
            VisibilityTimeout: visibilitySeconds,
            MessageSystemAttributeNames: ['SentTimestamp'],
          }),
          { abortSignal },
        )
        const Entries = []
        // one after the other: all at once they would take the connections that the writers' transactions need to end
        for (const [index, message] of messages.entries()) {
          const ReceiptHandle = await this.#handle(message)
          if (ReceiptHandle !== undefined) Entries.push({ Id: String(index), ReceiptHandle })
        }
        // lost here, it comes once more, and the inbox knows it
        if (Entries.length > 0) await this.#client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
      } catch {
        // stopped, or a broken connection: the loop's condition tells
        await pause(50)
      }
    }
  }

  /** Its receipt handle, once its effect is there. */
  async #handle(message: Message): Promise<string | undefined> {
    const id = this.#note(message)
    try {
      await this.#inbox.handleOnce(id, (tx) =>
        tx.execute({
          sql: 'INSERT INTO chaos.applied (event_id) VALUES (CAST(:id AS uuid))',
          parameters: { id },
          repeatable: false,
        }),
      )
      return message.ReceiptHandle
    } catch {
      return undefined
    }
  }

  /** Answers the event's id. A message that comes again, because it was not deleted in time, is no second delivery. */
  #note({ MessageId: messageId = '', Body: body = '', Attributes: attributes = {} }: Message): string {
    const received = JSON.parse(body) as { readonly id: string; readonly detail?: { readonly id: string } }
    const { id } = received.detail ?? received
    if (this.#seen.has(messageId)) return id
    this.#seen.add(messageId)
    const sentMs = Number(attributes.SentTimestamp)
    const before = this.delivered.get(id)
    if (before === undefined) this.delivered.set(id, { firstSentMs: sentMs, messages: 1 })
    else {
      before.messages += 1
      before.firstSentMs = Math.min(before.firstSentMs, sentMs)
    }
    return id
  }
}
