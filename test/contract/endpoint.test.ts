import {
  PublishBatchCommand,
  type PublishBatchRequestEntry,
  PublishCommand,
  CreateTopicCommand,
  SubscribeCommand,
} from '@aws-sdk/client-sns'
import {
  CreateQueueCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
  type SendMessageBatchRequestEntry,
} from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEndpoint } from '../../src/local/endpoint/endpoint.js'
import { bodies, received, sdkOptions, startTestServices, type TestServices } from '../support/local-services.js'

let services: TestServices
beforeAll(async () => void (services = await startTestServices()))
afterAll(() => services.stop())

const send = (QueueUrl: string, ...Entries: SendMessageBatchRequestEntry[]) =>
  services.sqsClient.send(new SendMessageBatchCommand({ QueueUrl, Entries }))

describe('the endpoint', () => {
  it('counts calls by service and operation, and answers 404 for what nobody serves', async () => {
    await services.sqsClient.send(new ListQueuesCommand({}))
    expect(services.calls()['sqs.ListQueues']).toBe(1)
    const answer = await fetch(`${services.endpoint.url}/bucket/key`)
    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain('nothing here serves GET /bucket/key')
  })

  it('refuses what a web page sends, whatever it asks for', async () => {
    const headers = { origin: 'http://example.com', 'content-type': 'text/plain' }
    const answer = await fetch(`${services.endpoint.url}/Execute`, { method: 'POST', headers, body: '{}' })
    expect([answer.status, await answer.text()]).toEqual([
      403,
      '{"message":"requests of web pages (with an Origin header) are refused"}',
    ])
  })

  it('refuses a body above 8 MiB', async () => {
    const answer = await fetch(services.endpoint.url, { method: 'POST', body: Buffer.alloc(8 * 1024 * 1024 + 1) }).catch(
      () => undefined,
    )
    expect(answer?.status ?? 413).toBe(413)
  })

  it('says in one line that a port is taken', async () => {
    const second = startEndpoint(services.endpoint.port, () => Promise.resolve('cut'))
    await expect(second).rejects.toThrow(`port ${services.endpoint.port} is in use: give another, or 0 for any free one`)
  })
})

describe('SQS behind the endpoint', () => {
  it('names queues by the host that the caller used, whatever region and account its credentials are for', async () => {
    const url = await services.queue('orders')
    expect(url).toBe(`${services.endpoint.url}/000000000000/orders`)
    const host = `http://localhost:${services.endpoint.port}`
    const elsewhere = new SQSClient({ ...sdkOptions(host), region: 'eu-west-1' })
    const { QueueUrl } = await elsewhere.send(new GetQueueUrlCommand({ QueueName: 'orders' }))
    elsewhere.destroy()
    expect(QueueUrl).toBe(`${host}/000000000000/orders`)
    expect((await services.sqsClient.send(new ListQueuesCommand({}))).QueueUrls).toContain(url)
  })

  it('takes every character that SQS takes, and refuses just the entry with one that it does not', async () => {
    const url = await services.queue('characters')
    const all = '\t\n\r ~ ß \uD7FF \uE000 \uFFFD 😀 \u{10FFFF}'
    const answer = await send(
      url,
      { Id: '0', MessageBody: all },
      { Id: '1', MessageBody: 'a\uFFFEb' },
      { Id: '2', MessageBody: 'a\u0000b' },
    )
    expect(answer.Failed).toMatchObject([
      { Id: '1', Code: 'InvalidMessageContents', SenderFault: true },
      { Id: '2', Code: 'InvalidMessageContents', SenderFault: true },
    ])
    expect(await bodies(services.sqsClient, url)).toEqual([all])
  })

  it.each<[string, Partial<SendMessageBatchRequestEntry>, string]>([
    ['an empty body', { MessageBody: '' }, 'MissingParameter'],
    [
      'an attribute without a value',
      { MessageAttributes: { a: { DataType: 'String', StringValue: '' } } },
      'InvalidParameterValue',
    ],
    [
      'an attribute of an unknown type',
      { MessageAttributes: { a: { DataType: 'Date', StringValue: 'x' } } },
      'InvalidParameterValue',
    ],
    [
      '11 attributes',
      {
        MessageAttributes: Object.fromEntries(
          'a b c d e f g h i j k'.split(' ').map((name) => [name, { DataType: 'String', StringValue: 'x' }]),
        ),
      },
      'InvalidParameterValue',
    ],
  ])('refuses the entry with %s by its id, and takes its neighbours', async (what, wrong, Code) => {
    const url = await services.queue('entries')
    const answer = await send(
      url,
      { Id: 'a', MessageBody: `${what} 1` },
      { Id: 'b', MessageBody: 'x', ...wrong },
      { Id: 'c', MessageBody: `${what} 2` },
    )
    expect(answer.Failed).toMatchObject([{ Id: 'b', Code, SenderFault: true }])
    expect(answer.Successful!.map(({ Id }) => Id)).toEqual(['a', 'c'])
    expect(await bodies(services.sqsClient, url)).toEqual([`${what} 1`, `${what} 2`])
  })

  it('leaves out of an answer the list that has no members, as AWS does', async () => {
    const url = await services.queue('lists')
    expect((await send(url, { Id: '0', MessageBody: 'x' })).Failed).toBeUndefined()
    expect((await send(url, { Id: '0', MessageBody: '' })).Successful).toBeUndefined()
  })

  it('refuses a batch whole: too long, too many, empty, ids not distinct or not valid, no such queue', async () => {
    const url = await services.queue('batches')
    const entry = (Id: string, MessageBody = 'x') => ({ Id, MessageBody })
    const half = 'x'.repeat(524_289)
    await expect(send(url, entry('0', half), entry('1', half), entry('2', ''))).rejects.toMatchObject({
      name: 'BatchRequestTooLong',
    })
    await expect(send(url, ...Array.from({ length: 11 }, (_, n) => entry(`${n}`)))).rejects.toMatchObject({
      name: 'TooManyEntriesInBatchRequest',
    })
    await expect(send(url)).rejects.toMatchObject({ name: 'EmptyBatchRequest' })
    await expect(send(url, entry('0'), entry('0'))).rejects.toMatchObject({ name: 'BatchEntryIdsNotDistinct' })
    // also where the entry that is refused for itself would have been the one too many
    const invalid = entry('0', '')
    await expect(send(url, entry('0'), invalid)).rejects.toMatchObject({ name: 'BatchEntryIdsNotDistinct' })
    await expect(send(url, ...Array.from({ length: 10 }, (_, n) => entry(`${n + 1}`)), invalid)).rejects.toMatchObject({
      name: 'TooManyEntriesInBatchRequest',
    })
    await expect(send(url, entry('a.b'))).rejects.toMatchObject({ name: 'InvalidBatchEntryId' })
    await expect(send(`${url}x`, entry('0'))).rejects.toMatchObject({ name: 'QueueDoesNotExist' })
    expect(await bodies(services.sqsClient, url)).toEqual([])
  })

  it('refuses a batch for a FIFO queue whole when an entry has no group or no deduplication id', async () => {
    const url = await services.queue('strict.fifo')
    const entry = { Id: '0', MessageBody: 'x', MessageGroupId: 'g', MessageDeduplicationId: 'd' }
    const without = (field: keyof typeof entry) => ({ ...entry, Id: '1', [field]: undefined })
    await expect(send(url, entry, without('MessageGroupId'))).rejects.toMatchObject({ name: 'MissingParameter' })
    await expect(send(url, entry, without('MessageDeduplicationId'))).rejects.toMatchObject({ name: 'InvalidParameterValue' })
    expect(await bodies(services.sqsClient, url)).toEqual([])
    const answer = await send(url, entry, { ...entry, Id: '1', MessageGroupId: 'ä' })
    expect(answer.Failed).toMatchObject([{ Id: '1', Code: 'InvalidParameterValue', SenderFault: true }])
  })

  it('takes a FIFO message without a deduplication id where the queue deduplicates by content', async () => {
    await services.sqsClient.send(
      new CreateQueueCommand({ QueueName: 'content.fifo', Attributes: { FifoQueue: 'true', ContentBasedDeduplication: 'true' } }),
    )
    const url = `${services.endpoint.url}/000000000000/content.fifo`
    await send(url, { Id: '0', MessageBody: 'same', MessageGroupId: 'g' }, { Id: '1', MessageBody: 'same', MessageGroupId: 'g' })
    expect(await bodies(services.sqsClient, url)).toEqual(['same'])
  })

  it('returns message attributes only to those who ask for them', async () => {
    const url = await services.queue('attributes')
    const MessageAttributes = { eventId: { DataType: 'String', StringValue: 'e1' } }
    await services.sqsClient.send(new SendMessageCommand({ QueueUrl: url, MessageBody: 'x', MessageAttributes }))
    const ask = { QueueUrl: url, VisibilityTimeout: 0 }
    const silent = await services.sqsClient.send(new ReceiveMessageCommand(ask))
    expect(silent.Messages![0]!.MessageAttributes).toBeUndefined()
    const [message] = await received(services.sqsClient, url)
    expect(message!.MessageAttributes!['eventId']!.StringValue).toBe('e1')
  })
})

describe('SNS behind the endpoint', () => {
  it('delivers raw to a subscribed queue, and fails an empty message by its id instead of forgetting it', async () => {
    const url = await services.queue('subscriber')
    const { TopicArn } = await services.snsClient.send(new CreateTopicCommand({ Name: 'news' }))
    const Endpoint = 'arn:aws:sqs:us-east-1:000000000000:subscriber'
    await services.snsClient.send(
      new SubscribeCommand({ TopicArn, Protocol: 'sqs', Endpoint, Attributes: { RawMessageDelivery: 'true' } }),
    )
    const PublishBatchRequestEntries = [
      { Id: 'a', Message: 'one & <two>' },
      { Id: 'b', Message: '' },
      { Id: 'c', Message: 'three' },
    ]
    const answer = await services.snsClient.send(new PublishBatchCommand({ TopicArn, PublishBatchRequestEntries }))
    expect(answer.Successful!.map(({ Id }) => Id)).toEqual(['a', 'c'])
    expect(answer.Failed).toMatchObject([{ Id: 'b', Code: 'InvalidParameter', SenderFault: true }])
    expect(await bodies(services.sqsClient, url)).toEqual(['one & <two>', 'three'])
    await expect(services.snsClient.send(new PublishCommand({ TopicArn, Message: '' }))).rejects.toMatchObject({
      name: 'InvalidParameterException',
    })
  })

  it('refuses a batch whole: too long, ids not distinct or not valid, no such topic', async () => {
    const { TopicArn } = await services.snsClient.send(new CreateTopicCommand({ Name: 'whole' }))
    const publish = (...PublishBatchRequestEntries: PublishBatchRequestEntry[]) =>
      services.snsClient.send(new PublishBatchCommand({ TopicArn, PublishBatchRequestEntries }))
    const half = 'x'.repeat(131_073)
    await expect(publish({ Id: '0', Message: half }, { Id: '1', Message: half })).rejects.toMatchObject({
      name: 'BatchRequestTooLongException',
    })
    // 262,144 bytes are taken, and one more in an attribute is one too many
    const most = { Id: '0', Message: 'x'.repeat(262_144 - 'nameStringvalue'.length) }
    const attributed = (StringValue: string) => ({
      ...most,
      MessageAttributes: { name: { DataType: 'String', StringValue } },
    })
    expect((await publish(attributed('value'))).Successful).toHaveLength(1)
    await expect(publish(attributed('value+'))).rejects.toMatchObject({ name: 'BatchRequestTooLongException' })
    await expect(publish({ Id: '0', Message: 'x' }, { Id: '0', Message: 'y' })).rejects.toMatchObject({
      name: 'BatchEntryIdsNotDistinctException',
    })
    await expect(publish({ Id: 'a b', Message: 'x' })).rejects.toMatchObject({ name: 'InvalidBatchEntryIdException' })
    const lost = new PublishCommand({ TopicArn: `${TopicArn!}-lost`, Message: 'x' })
    await expect(services.snsClient.send(lost)).rejects.toMatchObject({ name: 'NotFoundException' })
  })
})
