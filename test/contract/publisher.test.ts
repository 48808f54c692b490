import { DeleteMessageBatchCommand, type Message } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MessageFormat } from '../../src/core/destination.js'
import type { Publisher } from '../../src/core/ports.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { received, startTestServices, type TestServices } from '../support/local-services.js'
import { outboundEvent } from '../support/outbound-event.js'
import { testCredentials } from '../support/scripted-service.js'
import { publisherContract, type Arrival } from './publisher-contract.js'

/** Takes all messages off a queue; what arrives there is there when the request that brought it is answered. */
async function takeAll(services: TestServices, queueUrl: string): Promise<readonly Message[]> {
  const page = await received(services.sqsClient, queueUrl)
  if (page.length === 0) return []
  // a FIFO group gives out its next message only once the one before is deleted
  const Entries = page.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle }))
  await services.sqsClient.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries }))
  return [...page, ...(await takeAll(services, queueUrl))]
}

const clientOptions = (services: TestServices) =>
  [{ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: services.endpoint.url }] as const

function sqsPublisher(services: TestServices, queueUrl: string, format?: MessageFormat): Publisher {
  const client = createSqsClient(...clientOptions(services))
  return createSqsPublisher({ client, destination: { type: 'sqs', queueUrl, format }, source: 'orders' })
}

const sqsSubject = async (services: TestServices, queueName: string) => {
  const queueUrl = await services.queue(queueName)
  return {
    service: 'sqs' as const,
    requestFault: { name: 'BatchRequestTooLong', status: 400 },
    publisher: (format?: MessageFormat) => sqsPublisher(services, queueUrl, format),
    arrived: async () =>
      (await takeAll(services, queueUrl)).map(({ Body, MessageAttributes }): Arrival => ({
        eventId: MessageAttributes!.eventId!.StringValue!,
        text: Body!,
      })),
  }
}

publisherContract('SQS', sqsSubject)

publisherContract('EventBridge', async (services, id) => {
  const queueUrl = await services.bus(id)
  return {
    service: 'events',
    requestFault: { name: 'ValidationException', status: 400 },
    publisher: (format) => {
      const client = createEventBridgeClient(...clientOptions(services))
      const destination = { type: 'eventbridge', eventBusName: id, format } as const
      return createEventBridgePublisher({ client, destination, source: 'orders' })
    },
    arrived: async () =>
      (await takeAll(services, queueUrl)).map(({ Body }): Arrival => {
        const text = Body!.slice(Body!.indexOf('"detail":') + '"detail":'.length, -1)
        const { resources, detail } = JSON.parse(Body!) as { resources: string[]; detail: { id: string } }
        return { eventId: resources[0] ?? detail.id, text }
      }),
  }
})

describe('the publisher for SQS FIFO', () => {
  let services: TestServices
  let queueUrl: string

  beforeAll(async () => {
    services = await startTestServices()
    await services.sqs.createQueue('orders.fifo', { FifoQueue: 'true' })
    queueUrl = (await services.queue('plain')).replace(/plain$/, 'orders.fifo')
  })
  afterAll(async () => services.stop())

  async function publish(changes: Parameters<typeof outboundEvent>[0]): Promise<string> {
    const publisher = sqsPublisher(services, queueUrl)
    const preparation = publisher.prepare(outboundEvent(changes))
    if (!preparation.ok) throw new Error(preparation.reason)
    const answer = await publisher.publish([preparation.message])
    return answer.kind === 'answered' ? answer.entries[0]!.kind : answer.reason
  }

  it('is accepted with any ordering key, delivers a retried event once and a replayed one again', async () => {
    const keys = [null, 'customer-7', 'größe 7', 'k'.repeat(255)]
    for (const [index, orderingKey] of keys.entries()) {
      expect(await publish({ id: `of-key-${index}`, orderingKey })).toBe('accepted')
    }
    const event = { id: 'event-1', orderingKey: 'customer-8' }
    expect(await publish(event)).toBe('accepted')
    expect(await publish({ ...event, attempts: 1 })).toBe('accepted')
    expect(await publish({ ...event, replays: 1 })).toBe('accepted')
    const arrived = (await takeAll(services, queueUrl)).map(({ MessageAttributes }) => MessageAttributes!.eventId!.StringValue!)
    expect(arrived.filter((id) => id === 'event-1')).toHaveLength(2)
    expect(arrived).toHaveLength(6)
  })
})

describe('the publisher for a queue that does not exist', () => {
  it('says that the configuration is at fault', async () => {
    const services = await startTestServices()
    const publisher = sqsPublisher(services, `${services.endpoint.url}/000000000000/nowhere`)
    const preparation = publisher.prepare(outboundEvent())
    if (!preparation.ok) throw new Error(preparation.reason)
    expect(await publisher.publish([preparation.message])).toMatchObject({ kind: 'destination-fault', configuration: true })
    await services.stop()
  })
})
