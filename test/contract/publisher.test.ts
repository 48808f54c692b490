import { CreateTopicCommand } from '@aws-sdk/client-sns'
import { DeleteMessageBatchCommand, type Message } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MessageFormat } from '../../src/core/destination.js'
import type { Publisher } from '../../src/core/ports.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import { describeTopic } from '../../src/publishers/sns/describe.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { describeQueue } from '../../src/publishers/sqs/describe.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { startDestinationServices, type DestinationServices } from '../support/destination-services.js'
import { received } from '../support/local-services.js'
import { outboundEvent } from '../support/outbound-event.js'
import { testCredentials } from '../support/scripted-service.js'
import { provider, publisherContract, type Arrival } from './publisher-contract.js'

/** Takes all messages off a queue, and waits for what may still come. */
async function takeAll(services: DestinationServices, queueUrl: string): Promise<readonly Message[]> {
  const page = await received(services.sqsClient, queueUrl, provider.settleSeconds)
  if (page.length === 0) return []
  // a FIFO group gives out its next message only once the one before is deleted
  const Entries = page.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle }))
  await services.sqsClient.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries }))
  return [...page, ...(await takeAll(services, queueUrl))]
}

const arrivalOf = ({ Body, MessageAttributes }: Message): Arrival => ({
  eventId: MessageAttributes!.eventId!.StringValue!,
  text: Body!,
})

const clientOptions = (services: DestinationServices) =>
  [{ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: services.endpoint.url }] as const

function sqsPublisher(services: DestinationServices, queueUrl: string, format?: MessageFormat): Publisher {
  const client = createSqsClient(...clientOptions(services))
  return createSqsPublisher({ client, destination: { type: 'sqs', queueUrl, format }, source: 'orders' })
}

const sqsSubject = async (services: DestinationServices, queueName: string) => {
  const queueUrl = await services.queue(queueName)
  return {
    service: 'sqs' as const,
    requestFault: { name: 'BatchRequestTooLong', status: 400 },
    publisher: (format?: MessageFormat) => sqsPublisher(services, queueUrl, format),
    arrived: async () => (await takeAll(services, queueUrl)).map(arrivalOf),
  }
}

publisherContract('SQS', sqsSubject)

function snsPublisher(services: DestinationServices, topicArn: string, format?: MessageFormat): Publisher {
  const client = createSnsClient(...clientOptions(services))
  return createSnsPublisher({ client, destination: { type: 'sns', topicArn, format }, source: 'orders' })
}

/** A topic, and a queue that gets its messages raw; both FIFO if the name ends so. */
async function topicWithSubscriber(services: DestinationServices, name: string) {
  const queueName = name.endsWith('.fifo') ? `subscriber-${name}` : `${name}-subscriber`
  await services.sqs.createQueue(queueName, queueName.endsWith('.fifo') ? { FifoQueue: 'true' } : {})
  const topicArn = await services.sns.createTopic(name)
  await services.sns.subscribe(topicArn, `arn:aws:sqs:us-east-1:000000000000:${queueName}`)
  return { topicArn, queueUrl: `${services.endpoint.url}/000000000000/${queueName}` }
}

publisherContract('SNS', async (services, topicName) => {
  const { topicArn, queueUrl } = await topicWithSubscriber(services, topicName)
  return {
    service: 'sns',
    requestFault: { name: 'BatchRequestTooLong', status: 400 },
    publisher: (format) => snsPublisher(services, topicArn, format),
    arrived: async () => (await takeAll(services, queueUrl)).map(arrivalOf),
  }
})

publisherContract(
  'EventBridge',
  async (services, id) => {
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
  },
  {
    MiniStack: {
      'carries a payload verbatim, in both formats, and what destinations forbid as escapes': 'which encodes the detail anew',
    },
    LocalStack: {
      'carries a payload verbatim, in both formats, and what destinations forbid as escapes': 'which encodes the detail anew',
      'prepares messages of any size that go out in packed requests without one that is too long':
        'which takes 256 KiB where AWS takes 1 MB',
    },
  },
)

/** A FIFO queue, or a FIFO topic with one subscribed. */
const fifoSubjects = {
  SQS: async (services: DestinationServices) => {
    await services.sqs.createQueue('orders.fifo', { FifoQueue: 'true' })
    const queueUrl = `${services.endpoint.url}/000000000000/orders.fifo`
    return { queueUrl, publisher: sqsPublisher(services, queueUrl) }
  },
  SNS: async (services: DestinationServices) => {
    const { topicArn, queueUrl } = await topicWithSubscriber(services, 'news.fifo')
    return { queueUrl, publisher: snsPublisher(services, topicArn) }
  },
}

describe.each(['SQS', 'SNS'] as const)(`the publisher for %s FIFO, served by ${provider.name}`, (name) => {
  let services: DestinationServices
  let queueUrl: string
  let publisher: Publisher

  beforeAll(async () => {
    services = await startDestinationServices(provider)
    ;({ queueUrl, publisher } = await fifoSubjects[name](services))
  })
  afterAll(async () => services.stop())

  async function publish(changes: Parameters<typeof outboundEvent>[0]): Promise<string> {
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

describe('a queue or topic that takes less, or more, than its service by default', () => {
  it('says so by an attribute, and its publisher keeps to it', async () => {
    const services = await startDestinationServices(provider)
    const [settings, overrides] = clientOptions(services)
    const signal = AbortSignal.timeout(5000)
    const refusal = (publisher: Publisher, bytes: number) => {
      const preparation = publisher.prepare(outboundEvent({ payload: JSON.stringify('x'.repeat(bytes)) }))
      return preparation.ok ? 'prepared' : preparation.reason
    }

    await services.sqs.createQueue('pinned', { MaximumMessageSize: '262144' })
    const sqs = createSqsClient(settings, overrides)
    const queueUrl = `${services.endpoint.url}/000000000000/pinned`
    const queueBytes = (await describeQueue(sqs, queueUrl, signal)).maxBytes
    expect(queueBytes).toBe(262_144)
    const queue = createSqsPublisher({
      client: sqs,
      destination: { type: 'sqs', queueUrl },
      source: 'orders',
      ownMaxBytes: queueBytes,
    })
    expect(refusal(queue, 200_000)).toBe('prepared')
    expect(refusal(queue, 262_144)).toMatch('the queue takes 262144 (its attribute MaximumMessageSize)')

    const Attributes = { MaximumMessageSize: '100000' }
    const { TopicArn } = await services.snsClient.send(new CreateTopicCommand({ Name: 'small', Attributes }))
    const sns = createSnsClient(settings, overrides)
    const topicBytes = (await describeTopic(sns, TopicArn!, signal)).maxBytes
    expect(topicBytes).toBe(100_000)
    const topic = createSnsPublisher({
      client: sns,
      destination: { type: 'sns', topicArn: TopicArn! },
      source: 'orders',
      ownMaxBytes: topicBytes,
    })
    expect(refusal(topic, 99_000)).toBe('prepared')
    expect(refusal(topic, 100_000)).toMatch('the topic takes 100000 (its attribute MaximumMessageSize)')

    const plain = await services.sns.createTopic('plain')
    expect((await describeTopic(sns, plain, signal)).maxBytes).toBeUndefined()
    await services.stop()
  })
})

describe.each(['queue', 'topic'])('the publisher for a %s that does not exist', (kind) => {
  it('says that the configuration is at fault', async () => {
    const services = await startDestinationServices(provider)
    const publisher =
      kind === 'queue'
        ? sqsPublisher(services, `${services.endpoint.url}/000000000000/nowhere`)
        : snsPublisher(services, 'arn:aws:sns:us-east-1:000000000000:nowhere')
    const preparation = publisher.prepare(outboundEvent())
    if (!preparation.ok) throw new Error(preparation.reason)
    expect(await publisher.publish([preparation.message])).toMatchObject({ kind: 'destination-fault', configuration: true })
    await services.stop()
  })
})
