import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { sdkOptions } from './local-services.js'

export interface Delivery {
  readonly eventId: string
  readonly orderingKey: string | undefined
  readonly data: unknown
}

/** Reads a queue with one consumer, which keeps the order in which messages came; duplicates included. */
export async function readQueue(
  endpoint: string,
  queueUrl: string,
  until: (deliveries: readonly Delivery[]) => boolean,
  giveUpMs = 60_000,
) {
  const client = new SQSClient(sdkOptions(endpoint))
  const deliveries: Delivery[] = []
  const giveUpAt = performance.now() + giveUpMs
  try {
    while (!until(deliveries)) {
      if (performance.now() > giveUpAt) throw new Error(`gave up after ${giveUpMs} ms with ${deliveries.length} messages`)
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
      )
      if (Messages.length === 0) continue
      for (const { Body } of Messages) {
        const message = JSON.parse(Body ?? '{}') as { id: string; partitionkey?: string; data: unknown }
        deliveries.push({ eventId: message.id, orderingKey: message.partitionkey, data: message.data })
      }
      const Entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
      await client.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries }))
    }
    return deliveries
  } finally {
    client.destroy()
  }
}

/** First deliveries of a key whose number is not one more than the one before, by the payload's `key` and `n`. */
export function outOfOrder(deliveries: readonly Delivery[]): string[] {
  const next = new Map<number, number>()
  const seen = new Set<string>()
  const wrong: string[] = []
  for (const { eventId, data } of deliveries) {
    if (seen.has(eventId)) continue
    seen.add(eventId)
    const { key, n } = data as { key: number; n: number }
    const expected = next.get(key) ?? 0
    if (n !== expected) wrong.push(`key ${key}: ${n}, not ${expected}`)
    next.set(key, n + 1)
  }
  return wrong
}
