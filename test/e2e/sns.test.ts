import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateTopicCommand, DeleteTopicCommand, SNSClient, SubscribeCommand } from '@aws-sdk/client-sns'
import { GetQueueAttributesCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { received, sdkOptions } from '../support/local-services.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

const quiet = { port: 0, relays: 0, log: () => undefined } as const

interface Logged {
  readonly logId?: string
  readonly destination?: string
  readonly errorCode?: string
}

/** One relay invocation; the lines it logs. */
async function relay(stack: LocalStack): Promise<readonly Logged[]> {
  const { error, logs } = await stack.invoke('relay')
  expect(error).toBeNull()
  return logs.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Logged)
}

const unread = (lines: readonly Logged[]) => lines.filter(({ logId }) => logId === 'destination-unchecked')

describe('a local stack with a topic and a queue that take less than others', () => {
  let stack: LocalStack
  let clients: OutboxClients
  let sns: SNSClient

  beforeAll(async () => {
    stack = await startLocalStack(quiet)
    clients = outboxClients(stack.description)
    const Attributes = { MaximumMessageSize: '262144' }
    const { endpoint, queues, topics } = stack.description
    await clients.sqs.send(new SetQueueAttributesCommand({ QueueUrl: queues.queue, Attributes }))
    sns = new SNSClient(sdkOptions(endpoint))
    // the emulator takes this attribute with a new topic alone
    await sns.send(new DeleteTopicCommand({ TopicArn: topics.topic }))
    await sns.send(new CreateTopicCommand({ Name: 'topic', Attributes: { MaximumMessageSize: '200000' } }))
    const subscriber = { QueueUrl: queues['topic-subscriber']!, AttributeNames: ['QueueArn' as const] }
    const { Attributes: of } = await clients.sqs.send(new GetQueueAttributesCommand(subscriber))
    const subscription = { Protocol: 'sqs', Endpoint: of!.QueueArn!, Attributes: { RawMessageDelivery: 'true' } }
    await sns.send(new SubscribeCommand({ TopicArn: topics.topic, ...subscription }))
  })
  afterAll(async () => {
    sns.destroy()
    clients.destroy()
    await stack.stop()
  })

  it("delivers a row to the topic's subscriber as a queue would get it: the CloudEvent, and the attributes", async () => {
    await clients.execute(
      `INSERT INTO outbox (event_type, payload, destination, ordering_key, headers)
       VALUES ('NewsWritten', '{ "n":9007199254740993}', 'topic', 'größe', '{"traceparent":"00-abc-def-01","Tenant-Id":"t1"}')`,
    )
    expect(unread(await relay(stack))).toEqual([])
    const [message] = await received(clients.sqs, stack.description.queues['topic-subscriber']!, 5)
    const id = message!.MessageAttributes!.eventId!.StringValue!
    expect(message!.Body).toContain(`{"specversion":"1.0","id":"${id}","source":`)
    expect(message!.Body).toContain('"traceparent":"00-abc-def-01","tenantid":"t1","data":{ "n":9007199254740993}}')
    expect(message!.MessageAttributes).toMatchObject({
      eventType: { StringValue: 'NewsWritten' },
      traceparent: { StringValue: '00-abc-def-01' },
    })
    const { records } = await clients.execute('SELECT status, destination FROM outbox_status WHERE id = CAST(:id AS uuid)', {
      id,
    })
    expect(records).toEqual([[{ stringValue: 'published' }, { stringValue: 'topic' }]])
  })

  it.each([
    { destination: 'queue', from: 'queue', takes: 262_144 },
    { destination: 'topic', from: 'topic-subscriber', takes: 200_000 },
  ])(
    'fails an event that the $destination itself does not take, with its number and whose limit it is, and delivers the others',
    async ({ destination, from, takes }) => {
      const text = 'x'.repeat(takes - 20_000)
      await clients.insert('TooLarge', JSON.stringify({ text: text + 'x'.repeat(20_001) }), destination)
      for (const n of [1, 2, 3]) await clients.insert('Fits', JSON.stringify({ n, text }), destination)
      await relay(stack)
      const arrived = await clients.take(from, 3)
      expect(arrived.map((body) => (JSON.parse(body) as { data: { n: number } }).data.n).sort()).toEqual([1, 2, 3])
      const { records } = await clients.execute(
        "SELECT status, last_error FROM outbox_status WHERE event_type = 'TooLarge' AND destination = :destination",
        { destination },
      )
      expect(records).toEqual([
        [
          { stringValue: 'failed' },
          { stringValue: expect.stringContaining(`${takes} (its attribute MaximumMessageSize)`) as string },
        ],
      ])
    },
  )
})

describe('a relay that may not read the limit of its topic', () => {
  let directory: string

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outbox-sns-'))
  })
  afterAll(async () => {
    await rm(directory, { recursive: true })
  })

  it('says so once, and goes on: a FIFO topic gets a key in order, each event once', async () => {
    const configFile = join(directory, 'config.json')
    const news = { type: 'sns', topicArn: 'arn:aws:sns:us-east-1:111122223333:news.fifo', format: 'raw' }
    await writeFile(configFile, JSON.stringify({ destinations: { news }, default: 'news' }))
    const stack = await startLocalStack({ ...quiet, configFile })
    const clients = outboxClients(stack.description)
    try {
      const denied = { kind: 'error', name: 'AuthorizationError', status: 403 } as const
      stack.faults.set({ rules: [{ service: 'sns', operation: 'GetTopicAttributes', fault: denied }] })
      const payloads = Array.from({ length: 12 }, (_, n) => JSON.stringify({ n }))
      for (const payload of payloads) {
        await clients.execute('INSERT INTO outbox (event_type, payload, ordering_key) VALUES (:type, :payload, :key)', {
          type: 'News',
          payload,
          key: 'a key with spaces',
        })
      }
      expect(unread(await relay(stack))).toMatchObject([{ destination: 'news', errorCode: 'AuthorizationErrorException' }])
      expect(unread(await relay(stack))).toEqual([])
      expect(await clients.take('news-subscriber', 12)).toEqual(payloads)
      expect(await clients.waiting('news-subscriber')).toBe(0)
    } finally {
      clients.destroy()
      await stack.stop()
    }
  })
})
