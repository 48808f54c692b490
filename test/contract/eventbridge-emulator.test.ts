import {
  CreateEventBusCommand,
  DeleteRuleCommand,
  DescribeEventBusCommand,
  ListRulesCommand,
  ListTargetsByRuleCommand,
  PutEventsCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
  type PutEventsRequestEntry,
} from '@aws-sdk/client-eventbridge'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bodies, startTestServices, type TestServices } from '../support/local-services.js'

let services: TestServices
let target: string

beforeAll(async () => {
  services = await startTestServices()
  target = await services.bus('orders')
})
afterAll(() => services.stop())

const good: PutEventsRequestEntry = { EventBusName: 'orders', Source: 'shop', DetailType: 'OrderCreated', Detail: '{"n":1}' }
const put = (...entries: PutEventsRequestEntry[]) => services.eventsClient.send(new PutEventsCommand({ Entries: entries }))

describe('PutEvents', () => {
  it('delivers the envelope of EventBridge, its time cut to seconds and its detail untouched', async () => {
    const detail = '{ "big": 9007199254740993, "b": 1, "a": "ß\\u0000" , "a": 2.10 }'
    const time = new Date('2026-11-29T10:00:00.987Z')
    const answer = await put({ ...good, Detail: detail, Time: time, Resources: ['arn:x'] })
    const [body] = await bodies(services.sqsClient, target)
    expect(JSON.parse(body!)).toMatchObject({
      version: '0',
      id: answer.Entries![0]!.EventId,
      'detail-type': 'OrderCreated',
      source: 'shop',
      account: '000000000000',
      time: '2026-11-29T10:00:00Z',
      region: 'us-east-1',
      resources: ['arn:x'],
    })
    expect(body).toContain(`"detail":${detail}}`)
  })

  it.each<[string, Partial<PutEventsRequestEntry>, string]>([
    ['a detail that is no JSON', { Detail: '{"n":' }, 'MalformedDetail'],
    ['a detail that is an array', { Detail: '[1]' }, 'MalformedDetail'],
    ['a detail that is a string', { Detail: '"x"' }, 'MalformedDetail'],
    ['a detail deeper than 1000 levels', { Detail: '{"a":' + '['.repeat(1000) + ']'.repeat(1000) + '}' }, 'MalformedDetail'],
    ['an integer beyond 64 bits', { Detail: '{"n":9223372036854775808}' }, 'MalformedDetail'],
    ['an empty detail', { Detail: '' }, 'InvalidArgument'],
    ['no source', { Source: undefined }, 'InvalidArgument'],
    ['no detail type', { DetailType: undefined }, 'InvalidArgument'],
    ['a detail type of 129 characters', { DetailType: 'x'.repeat(129) }, 'InvalidArgument'],
    ['a source of AWS', { Source: 'aws.s3' }, 'NotAuthorizedForSourceException'],
    ['a trace header of 501 characters', { TraceHeader: 'x'.repeat(501) }, 'InvalidArgument'],
  ])('refuses the entry with %s by its index, and takes its neighbours', async (_what, wrong, code) => {
    const answer = await put({ ...good, Detail: '{"n":1}' }, { ...good, ...wrong }, { ...good, Detail: '{"n":3}' })
    expect(answer.FailedEntryCount).toBe(1)
    expect(answer.Entries!.map(({ ErrorCode }) => ErrorCode)).toEqual([undefined, code, undefined])
    expect(answer.Entries![1]!.EventId).toBeUndefined()
    const delivered = await bodies(services.sqsClient, target)
    expect(delivered.map((body) => (JSON.parse(body) as { detail: unknown }).detail)).toEqual([{ n: 1 }, { n: 3 }])
  })

  it('takes the largest and smallest 64-bit integers, and digits inside strings', async () => {
    const detail = '{"max":9223372036854775807,"min":-9223372036854775808,"text":"99999999999999999999\\"99999999999999999999"}'
    expect((await put({ ...good, Detail: detail })).FailedEntryCount).toBe(0)
    expect(await bodies(services.sqsClient, target)).toHaveLength(1)
  })

  it('refuses the whole request above 10 entries, above 1 MB, without entries, and when no entry is complete', async () => {
    const half = { ...good, Detail: JSON.stringify({ x: 'ä'.repeat(250_000) }) }
    for (const entries of [Array<PutEventsRequestEntry>(11).fill(good), [half, half], [], [{ Source: 'shop' }]]) {
      await expect(put(...entries)).rejects.toMatchObject({ name: 'ValidationException' })
    }
    expect(await bodies(services.sqsClient, target)).toEqual([])
  })

  it('answers success for a bus that does not exist, and delivers nothing, as AWS does', async () => {
    const answer = await put({ ...good, EventBusName: 'nowhere' })
    expect(answer.FailedEntryCount).toBe(0)
    expect(answer.Entries![0]!.EventId).toBeDefined()
    expect(await bodies(services.sqsClient, target)).toEqual([])
  })

  it('knows a bus by its ARN too', async () => {
    await put({ ...good, EventBusName: 'arn:aws:events:us-east-1:000000000000:event-bus/orders' })
    expect(await bodies(services.sqsClient, target)).toHaveLength(1)
  })
})

describe('buses, rules and targets', () => {
  it('sends to the targets of a rule that matches, until they are removed', async () => {
    const client = services.eventsClient
    const url = await services.queue('only-refunds')
    const { EventBusArn } = await client.send(new CreateEventBusCommand({ Name: 'refunds' }))
    expect((await client.send(new DescribeEventBusCommand({ Name: 'refunds' }))).Arn).toBe(EventBusArn)
    const rule = { EventBusName: 'refunds', Name: 'big', EventPattern: '{"detail":{"cents":[{"numeric":[">=",1000]}]}}' }
    const { RuleArn } = await client.send(new PutRuleCommand(rule))
    expect((await client.send(new ListRulesCommand({ EventBusName: 'refunds' }))).Rules).toMatchObject([
      { Name: 'big', Arn: RuleArn, State: 'ENABLED', EventPattern: rule.EventPattern },
    ])
    const Targets = [{ Id: 'q', Arn: 'arn:aws:sqs:us-east-1:000000000000:only-refunds' }]
    await client.send(new PutTargetsCommand({ EventBusName: 'refunds', Rule: 'big', Targets }))
    expect((await client.send(new ListTargetsByRuleCommand({ EventBusName: 'refunds', Rule: 'big' }))).Targets).toEqual(Targets)

    const refund = { ...good, EventBusName: 'refunds' }
    await put({ ...refund, Detail: '{"cents":999}' }, { ...refund, Detail: '{"cents":1000}' })
    expect(await bodies(services.sqsClient, url)).toHaveLength(1)

    await expect(client.send(new DeleteRuleCommand({ EventBusName: 'refunds', Name: 'big' }))).rejects.toThrow('has targets')
    await client.send(new RemoveTargetsCommand({ EventBusName: 'refunds', Rule: 'big', Ids: ['q'] }))
    await client.send(new DeleteRuleCommand({ EventBusName: 'refunds', Name: 'big' }))
    await put({ ...refund, Detail: '{"cents":1000}' })
    expect(await bodies(services.sqsClient, url)).toEqual([])
  })

  it('names what is wrong with a bus, a pattern or a target', async () => {
    const client = services.eventsClient
    await expect(client.send(new CreateEventBusCommand({ Name: 'orders' }))).rejects.toMatchObject({
      name: 'ResourceAlreadyExistsException',
    })
    await expect(client.send(new DescribeEventBusCommand({ Name: 'x' }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    })
    const rule = { EventBusName: 'orders', Name: 'r' }
    await expect(client.send(new PutRuleCommand({ ...rule, EventPattern: '{"source":[{"prefx":"a"}]}' }))).rejects.toMatchObject({
      name: 'InvalidEventPatternException',
      message: 'Event pattern is not valid. Reason: source: unrecognized match type prefx',
    })
    const stream = [{ Id: 's', Arn: 'arn:aws:kinesis:us-east-1:000000000000:stream/s' }]
    await expect(client.send(new PutTargetsCommand({ EventBusName: 'orders', Rule: 'all', Targets: stream }))).rejects.toThrow(
      'delivers to SQS queues and to functions of its own only, not to "arn:aws:kinesis',
    )
  })

  it('brings a function the envelope of an event that its rule matches', async () => {
    const client = services.eventsClient
    await client.send(new CreateEventBusCommand({ Name: 'watched' }))
    const rule = { EventBusName: 'watched', Name: 'canary', EventPattern: '{"detail-type":["Canary"]}' }
    await client.send(new PutRuleCommand(rule))
    const Targets = [{ Id: 'f', Arn: 'arn:aws:lambda:us-east-1:000000000000:function:canary' }]
    await client.send(new PutTargetsCommand({ EventBusName: 'watched', Rule: 'canary', Targets }))
    await put({ ...good, EventBusName: 'watched', DetailType: 'Canary' }, { ...good, EventBusName: 'watched' })
    expect(services.invoked).toMatchObject([
      { name: 'canary', event: { 'detail-type': 'Canary', source: 'shop', detail: { n: 1 } } },
    ])
  })
})
