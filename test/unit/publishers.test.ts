import { createServer, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { publishBisecting } from '../../src/core/bisect.js'
import type { PublishAnswer } from '../../src/core/outcome.js'
import type { Publisher } from '../../src/core/ports.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { outboundEvent } from '../support/outbound-event.js'
import {
  snsAnswer,
  snsError,
  startScriptedService,
  testCredentials,
  type ScriptedReply,
  type ScriptedService,
} from '../support/scripted-service.js'

const queueUrl = 'https://sqs.us-east-1.amazonaws.com/123456789012/orders'
const topicArn = 'arn:aws:sns:us-east-1:123456789012:orders'
const secretText = 'payload-text-that-nobody-may-log'

interface ClientOptions {
  readonly requestTimeoutMs: number
  readonly endpoint?: string
}

const publishers = {
  EventBridge: ({ requestTimeoutMs, ...overrides }: ClientOptions) => {
    const client = createEventBridgeClient({ requestTimeoutMs }, { ...testCredentials, ...overrides })
    const publisher = createEventBridgePublisher({
      client,
      destination: { type: 'eventbridge', eventBusName: 'bus' },
      source: 'orders',
    })
    return { client, publisher: publisher as Publisher }
  },
  SQS: ({ requestTimeoutMs, ...overrides }: ClientOptions) => {
    const client = createSqsClient({ requestTimeoutMs }, { ...testCredentials, ...overrides })
    const publisher = createSqsPublisher({ client, destination: { type: 'sqs', queueUrl }, source: 'orders' })
    return { client, publisher: publisher as Publisher }
  },
  SNS: ({ requestTimeoutMs, ...overrides }: ClientOptions) => {
    const client = createSnsClient({ requestTimeoutMs }, { ...testCredentials, ...overrides })
    const publisher = createSnsPublisher({ client, destination: { type: 'sns', topicArn }, source: 'orders' })
    return { client, publisher: publisher as Publisher }
  },
}
type Name = keyof typeof publishers
const names = ['EventBridge', 'SQS', 'SNS'] as const satisfies readonly Name[]

/** Every entry accepted, as the service that was asked would say it. */
function allAccepted(body: unknown): ScriptedReply {
  const { Entries = [], ...form } = body as { Entries?: { Id?: string }[] }
  if (Entries.length === 0) {
    const ids = Object.keys(form).flatMap((key) => /\.member\.(\d+)\.Id$/.exec(key)?.[1] ?? [])
    return snsAnswer(ids.map((n) => `<member><Id>${Number(n) - 1}</Id><MessageId>m-${n}</MessageId></member>`).join(''))
  }
  return Entries[0]?.Id === undefined
    ? { status: 200, body: { FailedEntryCount: 0, Entries: Entries.map((_, index) => ({ EventId: `m-${index}` })) } }
    : { status: 200, body: { Successful: Entries.map(({ Id }) => ({ Id, MessageId: `m-${Id ?? ''}` })) } }
}

const error = (status: number, name: string, message: string, headers: Readonly<Record<string, string>> = {}): ScriptedReply => ({
  status,
  headers: { 'x-amzn-errortype': name, ...headers },
  body: { __type: name, message },
})

/** The same error as the service words it: SNS speaks XML. */
const errorOf = (service: Name, status: number, name: string, message: string): ScriptedReply =>
  service === 'SNS' ? snsError(status, name, message) : error(status, name, message)

const messages = (publisher: Publisher, count: number) =>
  Array.from({ length: count }, (_, index) => {
    const preparation = publisher.prepare(outboundEvent({ id: `event-${index}`, payload: JSON.stringify({ index, secretText }) }))
    if (!preparation.ok) throw new Error(preparation.reason)
    return preparation.message
  })

describe.each(names)('a request to %s that fails whole', (name) => {
  let service: ScriptedService
  let client: { destroy(): void }
  let publisher: Publisher

  beforeAll(async () => {
    service = await startScriptedService()
    ;({ client, publisher } = publishers[name]({ requestTimeoutMs: 5000, endpoint: service.endpoint }))
  })

  afterAll(async () => {
    client.destroy()
    await service.stop()
  })

  async function answerTo(reply: ScriptedReply, count = 2): Promise<PublishAnswer> {
    service.script(reply)
    const answer = await publisher.publish(messages(publisher, count))
    // the relay decides about retries
    expect(service.requests).toHaveLength(1)
    return answer
  }

  it.each([
    [400, 'ThrottlingException'],
    [400, 'RequestThrottled'],
    [400, 'KmsThrottled'],
    [429, 'TooManyRequestsException'],
    [500, 'InternalFailure'],
    [500, 'InternalException'],
    [503, 'ServiceUnavailable'],
    [408, 'RequestTimeout'],
  ])('with %i %s is the fault of the destination, which heals', async (status, code) => {
    expect(await answerTo(errorOf(name, status, code, 'not now'))).toEqual({
      kind: 'destination-fault',
      code,
      reason: 'not now',
      configuration: false,
    })
  })

  it.each([
    [400, 'AccessDeniedException'],
    [403, 'AccessDenied'],
    [403, 'InvalidClientTokenId'],
    [400, 'UnrecognizedClientException'],
    [403, 'ExpiredTokenException'],
    [400, 'KmsDisabled'],
    [400, 'KMSInvalidStateException'],
    [400, 'ResourceNotFoundException'],
    [400, 'QueueDoesNotExist'],
    [404, 'UnknownOperationException'],
    [403, 'SomethingNew'],
  ])('with %i %s is the fault of the destination, and needs an operator', async (status, code) => {
    expect(await answerTo(errorOf(name, status, code, 'no'))).toMatchObject({
      kind: 'destination-fault',
      code,
      configuration: true,
    })
  })

  it('for what is in it is halved until the culprit stands alone; that event fails, its neighbours are accepted', async () => {
    const [code, status] = name === 'EventBridge' ? ['RequestEntityTooLarge', 413] : ['BatchRequestTooLong', 400]
    service.script(({ body }) =>
      JSON.stringify(body).includes('event-4') ? errorOf(name, status, code, 'too long') : allAccepted(body),
    )
    const { answers } = await publishBisecting(publisher, messages(publisher, 10))
    expect(answers.map((answer) => answer.kind)).toEqual(
      Array.from({ length: 10 }, (_, index) => (index === 4 ? 'refused' : 'accepted')),
    )
    expect(answers[4]).toMatchObject({ kind: 'refused', fault: 'event', reason: 'too long' })
    expect(plainCodeOf(answers[4])).toBe(code)
  })

  it('with a client fault that nobody knows is halved too, but an event refused alone is only refused for now', async () => {
    expect(await answerTo(errorOf(name, 400, 'SomethingNew', 'no'))).toEqual({
      kind: 'request-fault',
      code: 'SomethingNew',
      reason: 'no',
    })
    expect(await answerTo(errorOf(name, 400, 'SomethingNew', 'no'), 1)).toEqual({
      kind: 'answered',
      entries: [{ kind: 'refused', fault: 'transient', code: 'SomethingNew', reason: 'no' }],
    })
  })

  it('because of a field that the installation sets is never an event that fails', async () => {
    const [code, message] = (
      {
        SQS: ['InvalidParameterValue', 'Value x for parameter QueueUrl is invalid.'],
        SNS: ['InvalidParameter', 'Invalid parameter: TopicArn'],
        EventBridge: [
          'ValidationException',
          "1 validation error detected: Value 'b us' at 'entries.1.member.eventBusName' failed to satisfy constraint",
        ],
      } as const
    )[name]
    expect(await answerTo(errorOf(name, 400, code, message), 1)).toMatchObject({ kind: 'destination-fault', configuration: true })
  })

  it('gives a reason of one line, without the values and headers that services quote', async () => {
    const answer = await answerTo(
      errorOf(
        name,
        403,
        'SignatureDoesNotMatch',
        'The signature does not match.\n\nThe Canonical String\nx-amz-security-token:hush',
      ),
    )
    expect(answer).toMatchObject({ reason: 'The signature does not match.' })
    const quoted = `1 validation error detected: Value '{"a":"it's ${secretText}\n"}' at 'entries.1.member.detail' failed to satisfy constraint`
    expect(await answerTo(errorOf(name, 400, 'ValidationException', quoted))).toMatchObject({
      reason: "1 validation error detected: Value at 'entries.1.member.detail' failed to satisfy constraint",
    })
  })

  it('with an answer that nobody can read is the fault of the destination', async () => {
    for (const reply of [
      { status: 200, body: '<html>hello' },
      { status: 502, body: '<html>bad gateway' },
      { status: 503, body: '' },
    ]) {
      expect(await answerTo(reply)).toMatchObject({ kind: 'destination-fault', configuration: false })
    }
    expect(await answerTo({ status: 301, headers: { location: 'https://elsewhere.example' }, body: '' })).toMatchObject({
      kind: 'destination-fault',
      configuration: true,
    })
  })

  it('with a connection that is cut is the fault of the destination, and is not sent again by the SDK', async () => {
    expect(await answerTo('reset')).toMatchObject({ kind: 'destination-fault', code: 'ECONNRESET', configuration: false })
  })
})

it('an error that SQS names in the old way is known by that name too', async () => {
  const service = await startScriptedService()
  const { client, publisher } = publishers.SQS({ requestTimeoutMs: 5000, endpoint: service.endpoint })
  service.script(
    error(400, 'com.amazonaws.sqs#SomethingNew', 'no such queue', {
      'x-amzn-query-error': 'AWS.SimpleQueueService.NonExistentQueue;Sender',
    }),
  )
  expect(await publisher.publish(messages(publisher, 2))).toMatchObject({ kind: 'destination-fault', configuration: true })
  client.destroy()
  await service.stop()
})

it('names what it sends to, for the log of an open circuit', () => {
  const resources = names.map((name) => {
    const { client, publisher } = publishers[name]({ requestTimeoutMs: 5000 })
    client.destroy()
    return publisher.resource
  })
  expect(resources).toEqual(['bus', queueUrl, topicArn])
})

describe.each(names)('the %s client', (name) => {
  async function withService(reply: ScriptedReply | null, use: (service: ScriptedService) => Promise<void>): Promise<void> {
    const service = await startScriptedService()
    try {
      service.script(reply ?? (({ body }) => allAccepted(body)))
      await use(service)
    } finally {
      vi.unstubAllEnvs()
      await service.stop()
    }
  }

  it.each(['hang', 'stall', 'trickle'] as const)(
    'gives up a request that the service lets %s after the request timeout',
    async (reply) => {
      await withService(reply, async ({ endpoint, requests }) => {
        const { client, publisher } = publishers[name]({ requestTimeoutMs: 200, endpoint })
        const startedMs = performance.now()
        const answer = await publisher.publish(messages(publisher, 2))
        expect(answer).toMatchObject({ kind: 'destination-fault', configuration: false, timedOut: true })
        expect(performance.now() - startedMs).toBeLessThan(5000)
        expect(requests).toHaveLength(1)
        client.destroy()
      })
    },
  )

  it('goes to the standard endpoint variable, whatever host the queue URL has, and tries once, whatever AWS_MAX_ATTEMPTS says', async () => {
    await withService(null, async ({ endpoint, requests }) => {
      vi.stubEnv('AWS_ENDPOINT_URL', endpoint)
      vi.stubEnv('AWS_MAX_ATTEMPTS', '5')
      const warn = vi.spyOn(console, 'warn')
      const { client, publisher } = publishers[name]({ requestTimeoutMs: 5000 })
      expect(await publisher.publish(messages(publisher, 2))).toMatchObject({ kind: 'answered' })
      expect(requests).toHaveLength(1)
      expect(await client.config.maxAttempts()).toBe(1)
      expect(warn).not.toHaveBeenCalled()
      warn.mockRestore()
      client.destroy()
    })
  })

  it('calls a refused connection the fault of the destination', async () => {
    const { client, publisher } = publishers[name]({ requestTimeoutMs: 5000, endpoint: `http://127.0.0.1:${await closedPort()}` })
    expect(await publisher.publish(messages(publisher, 2))).toMatchObject({
      kind: 'destination-fault',
      code: 'ECONNREFUSED',
      configuration: false,
    })
    client.destroy()
  })

  it('calls a host that does not exist a fault of the configuration', async () => {
    const { client, publisher } = publishers[name]({ requestTimeoutMs: 5000, endpoint: 'http://no-such-host.invalid' })
    const answer = await publisher.publish(messages(publisher, 2))
    // a machine without a name server cannot know that the host does not exist
    expect(answer).toMatchObject({
      kind: 'destination-fault',
      code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN|TimeoutError)$/) as string,
    })
    if (answer.kind === 'destination-fault' && answer.code === 'ENOTFOUND') expect(answer.configuration).toBe(true)
    client.destroy()
  })
})

describe.each([
  ['EventBridge', createEventBridgeClient, createEventBridgePublisher, { type: 'eventbridge', eventBusName: 'bus' }],
  ['SQS', createSqsClient, createSqsPublisher, { type: 'sqs', queueUrl }],
  ['SNS', createSnsClient, createSnsPublisher, { type: 'sns', topicArn }],
] as const)('%s without credentials or region', (_, createClient, createPublisher, destination) => {
  it('is a fault of the configuration', async () => {
    for (const overrides of [
      {
        region: 'us-east-1',
        credentials: () => Promise.reject(Object.assign(new Error('none'), { name: 'CredentialsProviderError' })),
      },
      { region: () => Promise.reject(new Error('Region is missing')), credentials: testCredentials.credentials },
    ]) {
      const client = createClient({ requestTimeoutMs: 5000 }, overrides)
      const publisher = createPublisher({
        client: client as never,
        destination: destination as never,
        source: 'orders',
      }) as Publisher
      expect(await publisher.publish(messages(publisher, 1))).toMatchObject({ kind: 'destination-fault', configuration: true })
      client.destroy()
    }
  })
})

/** The code of a refusal without the suffix that an SDK puts after it. */
function plainCodeOf(answer: object | undefined): unknown {
  return (answer as { readonly code?: string } | undefined)?.code?.replace(/Exception$/, '')
}

/** A port that nobody listens on: one that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
