import { PutEventsCommand, type PutEventsRequestEntry } from '@aws-sdk/client-eventbridge'
import { SendMessageBatchCommand, type SendMessageBatchRequestEntry } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startDestinationServices, type DestinationServices, type ProviderName } from '../support/destination-services.js'
import { provider } from './publisher-contract.js'

/**
 * What becomes of a request with a good entry and a wrong one: both are taken; the wrong one alone is refused (and whose
 * fault that is said to be); or all are.
 */
type Answer = 'both accepted' | 'one refused' | 'one refused, sender at fault' | 'all refused'

let services: DestinationServices
let queueUrl: string
let fifoUrl: string

beforeAll(async () => {
  services = await startDestinationServices(provider)
  queueUrl = await services.queue('refusals')
  await services.sqs.createQueue('refusals.fifo', { FifoQueue: 'true' })
  fifoUrl = `${services.endpoint.url}/000000000000/refusals.fifo`
  await services.bus('refusals')
})
afterAll(() => services.stop())

const sendBatch =
  (wrong: Partial<SendMessageBatchRequestEntry>, good: Partial<SendMessageBatchRequestEntry> = {}, url = () => queueUrl) =>
  async (): Promise<Answer> => {
    const Entries = [
      { Id: 'good', MessageBody: 'x', ...good },
      { Id: 'wrong', MessageBody: 'x', ...wrong },
    ]
    try {
      const { Failed = [] } = await services.sqsClient.send(new SendMessageBatchCommand({ QueueUrl: url(), Entries }))
      if (Failed.length === 0) return 'both accepted'
      expect(Failed.map(({ Id }) => Id)).toEqual(['wrong'])
      return Failed[0]!.SenderFault === true ? 'one refused, sender at fault' : 'one refused'
    } catch {
      return 'all refused'
    }
  }

const putEvents =
  (wrong: Partial<PutEventsRequestEntry>, good: Partial<PutEventsRequestEntry> = {}) =>
  async (): Promise<Answer> => {
    const right = { EventBusName: 'refusals', Source: 'shop', DetailType: 'OrderCreated', Detail: '{}' }
    const Entries = [
      { ...right, ...good },
      { ...right, ...wrong },
    ]
    try {
      const answer = await services.eventsClient.send(new PutEventsCommand({ Entries }))
      const refused = answer.Entries!.map(({ ErrorCode }) => ErrorCode !== undefined)
      if (!refused.includes(true)) return 'both accepted'
      expect(refused).toEqual([false, true])
      return 'one refused'
    } catch {
      return 'all refused'
    }
  }

const half = 'x'.repeat(600_000)
const halfDetail = JSON.stringify({ x: half })

/** As AWS has it, or the strictest of its emulators where AWS does not say; and who is known to answer otherwise. */
const cases: readonly {
  readonly what: string
  readonly send: () => Promise<Answer>
  readonly answer: Answer
  readonly otherwise?: Partial<Record<ProviderName, Answer>>
}[] = [
  {
    what: 'SQS: a character that SQS does not take',
    send: sendBatch({ MessageBody: '\uFFFF' }),
    answer: 'one refused, sender at fault',
    otherwise: { LocalStack: 'one refused' },
  },
  { what: 'SQS: an empty body', send: sendBatch({ MessageBody: '' }), answer: 'one refused, sender at fault' },
  {
    what: 'SQS: more than 1 MiB together',
    send: sendBatch({ MessageBody: half }, { MessageBody: half }),
    answer: 'all refused',
  },
  {
    what: 'SQS FIFO: no message group',
    send: sendBatch({ MessageDeduplicationId: '2' }, { MessageGroupId: 'g', MessageDeduplicationId: '1' }, () => fifoUrl),
    answer: 'all refused',
    otherwise: { MiniStack: 'one refused, sender at fault' },
  },
  {
    what: 'SQS FIFO: no deduplication id',
    send: sendBatch({ MessageGroupId: 'g' }, { MessageGroupId: 'g', MessageDeduplicationId: '3' }, () => fifoUrl),
    answer: 'all refused',
    otherwise: { MiniStack: 'one refused, sender at fault' },
  },
  {
    what: 'EventBridge: a detail that is no JSON',
    send: putEvents({ Detail: '{' }),
    answer: 'one refused',
    otherwise: { MiniStack: 'both accepted' },
  },
  {
    what: 'EventBridge: a detail that is an array',
    send: putEvents({ Detail: '[1]' }),
    answer: 'one refused',
    otherwise: { MiniStack: 'both accepted' },
  },
  {
    what: 'EventBridge: no source',
    send: putEvents({ Source: undefined }),
    answer: 'one refused',
    otherwise: { MiniStack: 'both accepted' },
  },
  {
    what: 'EventBridge: no detail type',
    send: putEvents({ DetailType: undefined }),
    answer: 'one refused',
    otherwise: { MiniStack: 'both accepted' },
  },
  {
    what: 'EventBridge: a source of AWS',
    send: putEvents({ Source: 'aws.s3' }),
    answer: 'one refused',
    otherwise: { LocalStack: 'both accepted' },
  },
  {
    what: 'EventBridge: more than 1 MB together',
    send: putEvents({ Detail: halfDetail }, { Detail: halfDetail }),
    answer: 'all refused',
    otherwise: { MiniStack: 'both accepted' },
  },
  {
    what: 'EventBridge: a bus that does not exist',
    send: putEvents({ EventBusName: 'nowhere' }),
    answer: 'both accepted',
  },
]

describe(`a wrong entry beside a good one, at ${provider.name}`, () => {
  it.each(
    cases.map(({ what, send, answer, otherwise }) => {
      const here = otherwise?.[provider.name]
      const difference = here === undefined ? '' : `, which differs: elsewhere ${answer}`
      return { what, send, answer: here ?? answer, difference }
    }),
  )('$what: $answer$difference', async ({ send, answer }) => {
    expect(await send()).toBe(answer)
  })
})
