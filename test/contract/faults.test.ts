import { PutEventsCommand } from '@aws-sdk/client-eventbridge'
import { CreateTopicCommand, PublishBatchCommand, SubscribeCommand } from '@aws-sdk/client-sns'
import { SendMessageBatchCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { FaultSetting } from '../../src/local/faults/rules.js'
import { bodies, startTestServices, type TestServices } from '../support/local-services.js'

/** The three services that take batches, as one: send three messages, get an answer for each. */
interface Destination {
  readonly service: 'sqs' | 'sns' | 'events'
  readonly operation: string
  readonly throttled: string
  send(...texts: string[]): Promise<readonly Answer[]>
  delivered(): Promise<readonly string[]>
}
type Answer = { readonly accepted: true } | { readonly error: string; readonly senderFault: boolean | undefined } | 'missing'

let services: TestServices
let destinations: Readonly<Record<string, Destination>>

beforeAll(async () => {
  services = await startTestServices()
  const { sqsClient, snsClient, eventsClient } = services
  const queueUrl = await services.queue('queue')
  const subscriberUrl = await services.queue('subscriber')
  const targetUrl = await services.bus('bus')
  const { TopicArn } = await snsClient.send(new CreateTopicCommand({ Name: 'topic' }))
  const Endpoint = 'arn:aws:sqs:us-east-1:000000000000:subscriber'
  await snsClient.send(new SubscribeCommand({ TopicArn, Protocol: 'sqs', Endpoint, Attributes: { RawMessageDelivery: 'true' } }))

  type Lists = {
    Successful?: { Id?: string | undefined }[] | undefined
    Failed?: { Id: string | undefined; Code: string | undefined; SenderFault: boolean | undefined }[] | undefined
  }
  const byId = (count: number, { Successful = [], Failed = [] }: Lists): readonly Answer[] =>
    Array.from({ length: count }, (_, id): Answer => {
      const failed = Failed.find(({ Id }) => Id === `${id}`)
      if (failed !== undefined) return { error: failed.Code!, senderFault: failed.SenderFault }
      return Successful.some(({ Id }) => Id === `${id}`) ? { accepted: true } : 'missing'
    })
  const attribute = { DataType: 'String', StringValue: 'e' }
  destinations = {
    queue: {
      service: 'sqs',
      operation: 'SendMessageBatch',
      throttled: 'RequestThrottled',
      async send(...texts) {
        const Entries = texts.map((MessageBody, id) => ({ Id: `${id}`, MessageBody, MessageAttributes: { eventId: attribute } }))
        return byId(texts.length, await sqsClient.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries })))
      },
      delivered: () => bodies(sqsClient, queueUrl),
    },
    topic: {
      service: 'sns',
      operation: 'PublishBatch',
      throttled: 'ThrottledException',
      async send(...texts) {
        const PublishBatchRequestEntries = texts.map((Message, id) => ({ Id: `${id}`, Message }))
        return byId(texts.length, await snsClient.send(new PublishBatchCommand({ TopicArn, PublishBatchRequestEntries })))
      },
      delivered: () => bodies(sqsClient, subscriberUrl),
    },
    bus: {
      service: 'events',
      operation: 'PutEvents',
      throttled: 'ThrottlingException',
      async send(...texts) {
        const entry = { EventBusName: 'bus', Source: 's', DetailType: 't' }
        const Entries = texts.map((text) => ({ ...entry, Detail: JSON.stringify({ text }) }))
        const answer = await eventsClient.send(new PutEventsCommand({ Entries }))
        const answers = answer.Entries!.map(({ EventId, ErrorCode }): Answer => {
          if (ErrorCode !== undefined) return { error: ErrorCode, senderFault: undefined }
          return EventId === undefined ? 'missing' : { accepted: true }
        })
        expect(answer.FailedEntryCount).toBe(answers.filter((one) => typeof one === 'object' && 'error' in one).length)
        return answers
      },
      async delivered() {
        const envelopes = await bodies(sqsClient, targetUrl)
        return envelopes.map((body) => (JSON.parse(body) as { detail: { text: string } }).detail.text)
      },
    },
  }
})
afterEach(() => services.faults.clear())
afterAll(() => services.stop())

const ok = { accepted: true } as const
type RuleSetting = FaultSetting['rules'][number]

describe.each(['queue', 'topic', 'bus'])('a fault of destination %s', (name) => {
  const to = () => destinations[name]!
  const rule = (fault: RuleSetting['fault'], more: Partial<RuleSetting> = {}) => {
    const { service, operation } = to()
    services.faults.set({ rules: [{ service, operation, destination: name, fault, ...more }] })
  }

  it('error: the request fails with that name, and has no effect', async () => {
    rule({ kind: 'error', name: 'AccessDeniedException', status: 403 })
    await expect(to().send('a', 'b', 'c')).rejects.toMatchObject({
      name: 'AccessDeniedException',
      $metadata: { httpStatusCode: 403 },
    })
    expect(await to().delivered()).toEqual([])
  })

  it('throttle: the request fails as the service throttles', async () => {
    rule({ kind: 'throttle' }, { times: 1 })
    await expect(to().send('a')).rejects.toMatchObject({ name: to().throttled })
    expect(await to().send('b')).toEqual([ok])
    expect(await to().delivered()).toEqual(['b'])
  })

  it('latency: the answer takes so long', async () => {
    rule({ kind: 'latency', ms: 150 })
    const begun = performance.now()
    expect(await to().send('a')).toEqual([ok])
    expect(performance.now() - begun).toBeGreaterThan(140)
    expect(await to().delivered()).toEqual(['a'])
  })

  it('drop-reply: the connection is cut after the effect', async () => {
    rule({ kind: 'drop-reply' })
    await expect(to().send('a', 'b')).rejects.toMatchObject({ code: 'ECONNRESET' })
    services.faults.clear()
    expect(await to().delivered()).toEqual(['a', 'b'])
  })

  it('reset: the connection is cut without an effect', async () => {
    rule({ kind: 'reset' })
    await expect(to().send('a', 'b')).rejects.toMatchObject({ code: 'ECONNRESET' })
    services.faults.clear()
    expect(await to().delivered()).toEqual([])
  })

  it('entry-error: just the entry that fits is refused, and has no effect', async () => {
    rule({ kind: 'entry-error', code: 'InternalError', senderFault: false }, { match: 'poison' })
    const senderFault = to().service === 'events' ? undefined : false
    expect(await to().send('a', 'poison', 'c')).toEqual([ok, { error: 'InternalError', senderFault }, ok])
    expect(await to().delivered()).toEqual(['a', 'c'])
    expect(services.faults.get().rules[0]!.hits).toBe(1)
  })

  it('entry-missing: the entry is neither accepted nor refused, and has no effect', async () => {
    rule({ kind: 'entry-missing' }, { match: 'poison' })
    expect(await to().send('poison', 'b', 'c')).toEqual(['missing', ok, ok])
    expect(await to().delivered()).toEqual(['b', 'c'])
  })

  it('swallow: success is answered, nothing is delivered', async () => {
    rule({ kind: 'swallow' }, { match: 'poison' })
    expect(await to().send('a', 'b', 'poison')).toEqual([ok, ok, ok])
    expect(await to().delivered()).toEqual(['a', 'b'])
  })

  it('entry faults may take every entry of a request', async () => {
    rule({ kind: 'swallow' })
    expect(await to().send('a', 'b')).toEqual([ok, ok])
    rule({ kind: 'entry-missing' })
    expect(await to().send('a', 'b')).toEqual(['missing', 'missing'])
    rule({ kind: 'entry-error', code: 'X', senderFault: true })
    expect(await to().send('a')).toEqual([{ error: 'X', senderFault: to().service === 'events' ? undefined : true }])
    expect(await to().delivered()).toEqual([])
  })

  it('does not touch other destinations', async () => {
    rule({ kind: 'error', name: 'AccessDenied' }, { destination: 'another' })
    expect(await to().send('a')).toEqual([ok])
    expect(await to().delivered()).toEqual(['a'])
  })
})

describe('faults', () => {
  it('leave every other answer of PutEvents at its own index', async () => {
    services.faults.set({ rules: [{ service: 'events', match: 'poison', fault: { kind: 'entry-missing' } }] })
    const entry = { EventBusName: 'bus', Source: 's', DetailType: 't' }
    const Entries = ['{"text":"poison"}', 'malformed', '{"text":"poison"}', '{"text":"good"}'].map((Detail) => ({
      ...entry,
      Detail,
    }))
    const answer = await services.eventsClient.send(new PutEventsCommand({ Entries }))
    expect(answer.FailedEntryCount).toBe(1)
    expect(answer.Entries).toEqual([
      {},
      expect.objectContaining({ ErrorCode: 'MalformedDetail' }),
      {},
      { EventId: expect.any(String) as string },
    ])
    expect(await destinations['bus']!.delivered()).toEqual(['good'])
  })

  it('do not touch what a rule of the bus delivers to a queue', async () => {
    services.faults.set({ rules: [{ service: 'sqs', fault: { kind: 'error', name: 'AccessDenied' } }] })
    expect(await destinations['bus']!.send('a')).toEqual([ok])
    services.faults.clear()
    expect(await destinations['bus']!.delivered()).toEqual(['a'])
  })

  it('make a single send fail or vanish like an entry', async () => {
    const queueUrl = await services.queue('queue')
    const MessageAttributes = {
      b: { DataType: 'Binary', BinaryValue: Buffer.from([1, 2]) },
      a: { DataType: 'String', StringValue: 'é' },
      c: { DataType: 'Number.int', StringValue: '7' },
    }
    const message = { QueueUrl: queueUrl, MessageBody: 'ß', MessageAttributes }
    const sendOne = () => services.sqsClient.send(new SendMessageCommand(message))
    services.faults.set({ rules: [{ service: 'sqs', times: 1, fault: { kind: 'entry-error', code: 'InternalFailure' } }] })
    await expect(sendOne()).rejects.toMatchObject({ name: 'InternalFailure', $metadata: { httpStatusCode: 500 } })
    services.faults.set({ rules: [{ service: 'sqs', times: 1, fault: { kind: 'swallow' } }] })
    const swallowed = await sendOne()
    expect(await destinations['queue']!.delivered()).toEqual([])
    // the digests, which SDKs compare with their own, are those of a message that was taken
    const { MessageId, ...taken } = await sendOne()
    expect(swallowed).toMatchObject({ ...taken, $metadata: expect.anything() as unknown })
    expect(swallowed.MessageId).not.toBe(MessageId)
    expect(await destinations['queue']!.delivered()).toEqual(['ß'])
  })
})
