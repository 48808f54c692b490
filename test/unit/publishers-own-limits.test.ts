import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { OwnLimits, parseBytes, READ_TIMEOUT_MS, REFRESH_MS, type ReadBytes } from '../../src/publishers/own-limits.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import { readTopicBytes } from '../../src/publishers/sns/own-limit.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { readQueueBytes } from '../../src/publishers/sqs/own-limit.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'
import { snsError, startScriptedService, testCredentials, type ScriptedService } from '../support/scripted-service.js'
import { TestClock } from '../support/test-clock.js'

describe('the own limits of destinations', () => {
  let clock: TestClock
  let telemetry: RecordingTelemetry
  let reads: number
  let answer: () => Promise<number | undefined>
  let limits: OwnLimits
  const denied = () => Promise.reject(Object.assign(new Error('not you\nsecond line'), { name: 'AccessDenied' }))
  const read: ReadBytes = () => {
    reads += 1
    return answer()
  }

  beforeEach(() => {
    clock = new TestClock()
    telemetry = new RecordingTelemetry()
    reads = 0
    answer = () => Promise.resolve(262_144)
    limits = new OwnLimits(new Map([['queue', read]]), clock)
  })

  const queueBytes = async () => (await limits.read(telemetry)).get('queue')

  it('are read once, and again only after five minutes', async () => {
    expect(await queueBytes()).toBe(262_144)
    answer = () => Promise.resolve(1_048_576)
    clock.advance(REFRESH_MS - 1)
    expect(await queueBytes()).toBe(262_144)
    expect(reads).toBe(1)
    clock.advance(1)
    expect(await queueBytes()).toBe(1_048_576)
    expect(REFRESH_MS).toBe(300_000)
  })

  it('stay as they were when a read fails, which is logged once until one succeeds, and never thrown', async () => {
    const next = async () => {
      clock.advance(REFRESH_MS)
      return queueBytes()
    }
    answer = denied
    expect(await next()).toBeUndefined()
    expect(await next()).toBeUndefined()
    expect(telemetry.logged('limit-unread')).toEqual([{ destination: 'queue', errorCode: 'AccessDenied', error: 'not you' }])
    answer = () => Promise.resolve(2048)
    expect(await next()).toBe(2048)
    answer = denied
    expect(await next()).toBe(2048)
    expect(await next()).toBe(2048)
    expect(telemetry.logged('limit-unread')).toHaveLength(2)
    expect(reads).toBe(5)
  })

  it('of one destination are known though the read of another fails', async () => {
    limits = new OwnLimits(
      new Map([
        ['broken', denied],
        ['queue', read],
      ]),
      clock,
    )
    expect([...(await limits.read(telemetry))]).toEqual([['queue', 262_144]])
    expect(telemetry.logged('limit-unread')).toMatchObject([{ destination: 'broken' }])
  })
})

describe('MaximumMessageSize', () => {
  it('counts only if it is what a service may give', () => {
    expect(['1024', '262144', '1048576'].map(parseBytes)).toEqual([1024, 262_144, 1_048_576])
    expect(['', '0', '1023', '1048577', '2048.5', 'many', undefined].map(parseBytes)).toEqual(Array(7).fill(undefined))
  })

  let service: ScriptedService
  let sqs: ReturnType<typeof createSqsClient>
  let sns: ReturnType<typeof createSnsClient>
  const queueUrl = 'https://sqs.us-east-1.amazonaws.com/123456789012/orders'
  const topicArn = 'arn:aws:sns:us-east-1:123456789012:orders'
  const soon = () => AbortSignal.timeout(READ_TIMEOUT_MS)

  beforeAll(async () => {
    service = await startScriptedService()
    sqs = createSqsClient({ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: service.endpoint })
    sns = createSnsClient({ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: service.endpoint })
  })
  afterAll(async () => {
    sqs.destroy()
    sns.destroy()
    await service.stop()
  })

  it('of a queue is asked for alone', async () => {
    service.script({ status: 200, body: { Attributes: { MaximumMessageSize: '262144' } } })
    expect(await readQueueBytes(sqs, queueUrl, soon())).toBe(262_144)
    expect(service.requests).toMatchObject([
      { target: 'AmazonSQS.GetQueueAttributes', body: { QueueUrl: queueUrl, AttributeNames: ['MaximumMessageSize'] } },
    ])
    service.script({ status: 200, body: {} })
    expect(await readQueueBytes(sqs, queueUrl, soon())).toBeUndefined()
  })

  it('of a topic is among its attributes, or not set', async () => {
    const attributes = (entries: string) => ({
      status: 200,
      headers: { 'content-type': 'text/xml' },
      body: `<GetTopicAttributesResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><GetTopicAttributesResult><Attributes>${entries}</Attributes></GetTopicAttributesResult></GetTopicAttributesResponse>`,
    })
    service.script(attributes('<entry><key>MaximumMessageSize</key><value>500000</value></entry>'))
    expect(await readTopicBytes(sns, topicArn, soon())).toBe(500_000)
    expect(service.requests).toMatchObject([{ target: 'GetTopicAttributes', body: { TopicArn: topicArn } }])
    service.script(attributes('<entry><key>Owner</key><value>123456789012</value></entry>'))
    expect(await readTopicBytes(sns, topicArn, soon())).toBeUndefined()
  })

  it('is given up after a second by a service that hangs, and a denied read says so', async () => {
    const telemetry = new RecordingTelemetry()
    const read = (destination: string, readBytes: ReadBytes) =>
      new OwnLimits(new Map([[destination, readBytes]]), new TestClock()).read(telemetry)
    service.script('hang')
    const startedMs = performance.now()
    await read('slow', (signal) => readQueueBytes(sqs, queueUrl, signal))
    expect(performance.now() - startedMs).toBeLessThan(4000)
    service.script(snsError(403, 'AuthorizationError', 'not authorized'))
    await read('denied', (signal) => readTopicBytes(sns, topicArn, signal))
    expect(telemetry.logged('limit-unread')).toMatchObject([
      { destination: 'slow', errorCode: 'AbortError' },
      { destination: 'denied', errorCode: 'AuthorizationErrorException', error: 'not authorized' },
    ])
  })
})
