import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { accountIn } from '../../src/publishers/account.js'
import { DestinationCheck, REFRESH_MS, type Described, type Description } from '../../src/publishers/destination-check.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { describeBus } from '../../src/publishers/eventbridge/describe.js'
import { parseBytes } from '../../src/publishers/size-attribute.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import { describeTopic } from '../../src/publishers/sns/describe.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { describeQueue } from '../../src/publishers/sqs/describe.js'
import { withheld } from '../../src/publishers/withheld.js'
import { outboundEvent } from '../support/outbound-event.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'
import { ScriptedPublisher } from '../support/scripted-publisher.js'
import { snsError, startScriptedService, testCredentials, type ScriptedService } from '../support/scripted-service.js'
import { TestClock } from '../support/test-clock.js'

const own = '123456789012'
const arn = (account: string) => `arn:aws:events:us-east-1:${account}:event-bus/orders`
const failing = (name: string, message: string) => () => Promise.reject(Object.assign(new Error(message), { name }))
const denied = failing('AccessDeniedException', 'not you\nsecond line')
const gone = failing('ResourceNotFoundException', 'Event bus orders does not exist.')
const saying =
  (maxBytes: number | undefined, account = own) =>
  () =>
    Promise.resolve({ arn: arn(account), maxBytes })

describe('the check of destinations', () => {
  let clock: TestClock
  let telemetry: RecordingTelemetry
  let reads: number
  let answer: () => Promise<Description>
  let check: DestinationCheck
  const bus = (resource: string): Described => ({
    resource,
    describe: () => {
      reads += 1
      return answer()
    },
  })

  beforeEach(() => {
    clock = new TestClock()
    telemetry = new RecordingTelemetry()
    reads = 0
    answer = saying(262_144)
    check = new DestinationCheck(new Map([['bus', bus('orders')]]), clock)
  })

  const state = async () => (await check.states(telemetry, own)).get('bus')
  const next = () => {
    clock.advance(REFRESH_MS)
    return state()
  }
  const counted = () => telemetry.metrics.filter(({ name }) => name === 'DestinationsMissing').map(({ value }) => value)

  it('reads once, and again only after five minutes', async () => {
    expect(await state()).toEqual({ maxBytes: 262_144, problem: undefined })
    answer = saying(1_048_576)
    clock.advance(REFRESH_MS - 1)
    expect((await state())?.maxBytes).toBe(262_144)
    expect(reads).toBe(1)
    clock.advance(1)
    expect((await state())?.maxBytes).toBe(1_048_576)
    expect(REFRESH_MS).toBe(300_000)
  })

  it('leaves all as it was when a read fails, which is logged once until one succeeds, and never thrown', async () => {
    answer = denied
    expect((await next())?.maxBytes).toBeUndefined()
    expect((await next())?.maxBytes).toBeUndefined()
    expect(telemetry.logged('destination-unchecked')).toEqual([
      { destination: 'bus', resource: 'orders', errorCode: 'AccessDeniedException', error: 'not you' },
    ])
    answer = saying(2048)
    expect((await next())?.maxBytes).toBe(2048)
    answer = denied
    expect((await next())?.maxBytes).toBe(2048)
    expect((await next())?.maxBytes).toBe(2048)
    expect(telemetry.logged('destination-unchecked')).toHaveLength(2)
    expect(reads).toBe(5)
  })

  it('knows one destination though the read of another fails', async () => {
    check = new DestinationCheck(
      new Map([
        ['broken', { resource: 'broken', describe: denied }],
        ['bus', bus('orders')],
      ]),
      clock,
    )
    expect((await state())?.maxBytes).toBe(262_144)
    expect(telemetry.logged('destination-unchecked')).toMatchObject([{ destination: 'broken' }])
  })

  it('counts and names one that does not exist at every call, until it exists', async () => {
    answer = gone
    const problem = 'orders does not exist (ResourceNotFoundException: Event bus orders does not exist.)'
    expect((await state())?.problem).toBe(problem)
    expect((await state())?.problem).toBe(problem)
    expect(telemetry.logged('destination-missing')).toEqual(
      Array(2).fill({ destination: 'bus', resource: 'orders', accountExpected: own, accountSeen: null, error: problem }),
    )
    answer = saying(undefined)
    expect((await state())?.problem).toBeUndefined()
    expect((await state())?.problem).toBeUndefined()
    expect(counted()).toEqual([1, 1, 0, 0])
    expect(reads).toBe(3)
  })

  it('refuses a bus of an account that is neither configured nor the own', async () => {
    answer = saying(undefined, '999999999999')
    expect((await state())?.problem).toBe('orders belongs to account 999999999999, expected is 123456789012')
    expect(telemetry.logged('destination-missing')).toMatchObject([{ accountExpected: own, accountSeen: '999999999999' }])
    expect(counted()).toEqual([1])
  })

  it('takes the account that the configuration names, and any if the own one is unknown', async () => {
    const queue = 'https://sqs.us-east-1.amazonaws.com/999999999999/orders'
    check = new DestinationCheck(new Map([['bus', bus(queue)]]), clock)
    answer = saying(undefined, '999999999999')
    expect((await state())?.problem).toBeUndefined()
    check = new DestinationCheck(new Map([['bus', bus('orders')]]), clock)
    expect((await check.states(telemetry, undefined)).get('bus')?.problem).toBeUndefined()
    expect(counted()).toEqual([0, 0])
  })

  it('believes that a destination is missing while nothing answers, but not against a missing right', async () => {
    answer = gone
    await state()
    answer = failing('AbortError', 'Request aborted')
    expect((await state())?.problem).toContain('does not exist')
    answer = denied
    expect((await state())?.problem).toBeUndefined()
    expect(counted()).toEqual([1, 1, 0])
  })
})

describe('a publisher of a missing bus', () => {
  it('sends nothing, and answers with a fault of the destination that only an operator can heal', async () => {
    const publisher = new ScriptedPublisher()
    const held = withheld(publisher, 'orders does not exist')
    const preparation = held.prepare(outboundEvent())
    expect(preparation).toMatchObject({ ok: true })
    const messages = preparation.ok ? [preparation.message] : []
    expect(await held.publish(messages)).toEqual({
      kind: 'destination-fault',
      code: 'DestinationMissing',
      reason: 'orders does not exist',
      configuration: true,
    })
    expect(publisher.requests).toEqual([])
    expect([held.limits, held.resource]).toEqual([publisher.limits, publisher.resource])
  })
})

describe('the account of a resource', () => {
  it.each([
    ['arn:aws:sns:us-east-1:123456789012:orders', own],
    ['arn:aws-cn:events:cn-north-1:123456789012:event-bus/orders', own],
    ['https://sqs.us-east-1.amazonaws.com/123456789012/orders', own],
    ['http://localhost:4566/123456789012/orders.fifo', own],
    ['http://localhost:9324/queue/orders', undefined],
    ['orders', undefined],
    [undefined, undefined],
  ])('is in %s', (resource, account) => {
    expect(accountIn(resource)).toBe(account)
  })
})

describe('MaximumMessageSize', () => {
  it('counts only if it is what a service may give', () => {
    expect(['1024', '262144', '1048576'].map(parseBytes)).toEqual([1024, 262_144, 1_048_576])
    expect(['', '0', '1023', '1048577', '2048.5', 'many', undefined].map(parseBytes)).toEqual(Array(7).fill(undefined))
  })
})

describe('the description', () => {
  let service: ScriptedService
  let sqs: ReturnType<typeof createSqsClient>
  let sns: ReturnType<typeof createSnsClient>
  let events: ReturnType<typeof createEventBridgeClient>
  const queueUrl = `https://sqs.us-east-1.amazonaws.com/${own}/orders`
  const queueArn = `arn:aws:sqs:us-east-1:${own}:orders`
  const topicArn = `arn:aws:sns:us-east-1:${own}:orders`
  const soon = () => AbortSignal.timeout(10_000)

  beforeAll(async () => {
    service = await startScriptedService()
    const there = { ...testCredentials, endpoint: service.endpoint }
    sqs = createSqsClient({ requestTimeoutMs: 5000 }, there)
    sns = createSnsClient({ requestTimeoutMs: 5000 }, there)
    events = createEventBridgeClient({ requestTimeoutMs: 5000 }, there)
  })
  afterAll(async () => {
    for (const client of [sqs, sns, events]) client.destroy()
    await service.stop()
  })

  it('of a queue is asked for in one call', async () => {
    service.script({ status: 200, body: { Attributes: { MaximumMessageSize: '262144', QueueArn: queueArn } } })
    expect(await describeQueue(sqs, queueUrl, soon())).toEqual({ arn: queueArn, maxBytes: 262_144 })
    expect(service.requests).toMatchObject([
      {
        target: 'AmazonSQS.GetQueueAttributes',
        body: { QueueUrl: queueUrl, AttributeNames: ['MaximumMessageSize', 'QueueArn'] },
      },
    ])
    service.script({ status: 200, body: {} })
    expect(await describeQueue(sqs, queueUrl, soon())).toEqual({ arn: undefined, maxBytes: undefined })
  })

  it('of a topic is among its attributes, its size perhaps not set', async () => {
    const attributes = (entries: string) => ({
      status: 200,
      headers: { 'content-type': 'text/xml' },
      body: `<GetTopicAttributesResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><GetTopicAttributesResult><Attributes>${entries}</Attributes></GetTopicAttributesResult></GetTopicAttributesResponse>`,
    })
    service.script(attributes('<entry><key>MaximumMessageSize</key><value>500000</value></entry>'))
    expect(await describeTopic(sns, topicArn, soon())).toEqual({ arn: undefined, maxBytes: 500_000 })
    expect(service.requests).toMatchObject([{ target: 'GetTopicAttributes', body: { TopicArn: topicArn } }])
    service.script(attributes(`<entry><key>TopicArn</key><value>${topicArn}</value></entry>`))
    expect(await describeTopic(sns, topicArn, soon())).toEqual({ arn: topicArn, maxBytes: undefined })
  })

  it('of a bus is its ARN; one of the own account is asked for by its name', async () => {
    service.script({ status: 200, body: { Arn: arn(own), Name: 'orders' } })
    expect(await describeBus(events, 'orders', own, soon())).toEqual({ arn: arn(own), maxBytes: undefined })
    expect(service.requests).toMatchObject([{ target: 'AWSEvents.DescribeEventBus', body: { Name: 'orders' } }])
    service.script({ status: 200, body: { Arn: arn(own), Name: 'orders' } })
    expect(await describeBus(events, arn(own), own, soon())).toMatchObject({ arn: arn(own) })
    expect(service.requests).toMatchObject([{ body: { Name: 'orders' } }])
    service.script({ status: 200, body: { Arn: arn(own), Name: 'orders' } })
    expect(await describeBus(events, arn(own), undefined, soon())).toMatchObject({ arn: arn(own) })
    expect(service.requests).toMatchObject([{ body: { Name: arn(own) } }])
  })

  it('of a bus of another account is not asked for: the answer would be about one of this account', async () => {
    const sent = service.requests.length
    await expect(describeBus(events, arn('999999999999'), own, soon())).rejects.toMatchObject({ code: 'OtherAccount' })
    expect(service.requests).toHaveLength(sent)
  })

  it('is given up after a second by a service that hangs, and a denied one says so', async () => {
    const telemetry = new RecordingTelemetry()
    const states = (name: string, describe: Described['describe']) =>
      new DestinationCheck(new Map([[name, { resource: name, describe }]]), new TestClock()).states(telemetry, own)
    service.script('hang')
    const startedMs = performance.now()
    await states('slow', (signal) => describeQueue(sqs, queueUrl, signal))
    expect(performance.now() - startedMs).toBeLessThan(4000)
    service.script(snsError(403, 'AuthorizationError', 'not authorized'))
    await states('denied', (signal) => describeTopic(sns, topicArn, signal))
    expect(telemetry.logged('destination-unchecked')).toMatchObject([
      { destination: 'slow', errorCode: 'AbortError' },
      { destination: 'denied', errorCode: 'AuthorizationErrorException', error: 'not authorized' },
    ])
  })
})
