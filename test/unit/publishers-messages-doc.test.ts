import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MESSAGE_LIMITS } from '../../src/core/event-limits.js'
import type { Publisher } from '../../src/core/ports.js'
import { MAX_ENTRIES as EVENTBRIDGE_ENTRIES } from '../../src/publishers/eventbridge/limits.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { MAX_ENTRIES as SNS_ENTRIES } from '../../src/publishers/sns/limits.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { MAX_ENTRIES as SQS_ENTRIES } from '../../src/publishers/sqs/limits.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { logCatalogue } from '../../src/telemetry/logs.js'
import { outboundEvent } from '../support/outbound-event.js'

const document = readFileSync(new URL('../../docs/messages.md', import.meta.url), 'utf8')

/** The JSON below `<!-- example: NAME -->`, as it stands there. */
function example(name: string): string {
  const block = new RegExp(`^<!-- example: ${name} -->\\n\`\`\`json\\n([^]*?)\\n\`\`\`$`, 'm').exec(document)?.[1]
  if (block === undefined) throw new Error(`docs/messages.md has no example "${name}"`)
  return block
}

/** The row that the document inserts. */
const event = outboundEvent({
  aggregateId: 'order-42',
  orderingKey: 'customer-7',
  headers: '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tenant-Id": "t1"}',
})

const unused = { send: () => Promise.reject(new Error('nothing is sent')) }
const queueUrl = 'https://sqs.us-east-1.amazonaws.com/123456789012/orders'

function encode<Entry>(publisher: Publisher<Entry>): Entry {
  const preparation = publisher.prepare(event)
  if (!preparation.ok) throw new Error(preparation.reason)
  return preparation.message.entry
}
const sqs = (format: 'cloudevents' | 'raw', url = queueUrl) =>
  encode(createSqsPublisher({ client: unused, destination: { type: 'sqs', queueUrl: url, format }, source: 'orders' }))
const topicArn = 'arn:aws:sns:us-east-1:123456789012:orders'
const sns = (format: 'cloudevents' | 'raw', arn = topicArn) =>
  encode(createSnsPublisher({ client: unused, destination: { type: 'sns', topicArn: arn, format }, source: 'orders' }))
const eventBridge = (format: 'cloudevents' | 'raw') =>
  encode(
    createEventBridgePublisher({
      client: unused,
      destination: { type: 'eventbridge', eventBusName: 'bus', format },
      source: 'orders',
    }),
  )

describe('docs/messages.md', () => {
  it('inserts the row that its examples show', () => {
    for (const text of [event.id, event.eventType, event.payload, event.aggregateId!, event.orderingKey!, event.headers!]) {
      expect(document).toContain(`'${text}'`)
    }
  })

  it('shows the text of a message exactly', () => {
    expect(example('cloudevents')).toBe(sqs('cloudevents').MessageBody)
    expect(example('raw')).toBe(sqs('raw').MessageBody)
  })

  it('shows the attributes of an SQS message in both formats', () => {
    expect(JSON.parse(example('sqs attributes'))).toEqual(sqs('cloudevents').MessageAttributes)
    expect(sqs('raw').MessageAttributes).toEqual(sqs('cloudevents').MessageAttributes)
  })

  it('shows what a FIFO queue gets besides', () => {
    const { MessageGroupId, MessageDeduplicationId } = sqs('cloudevents', `${queueUrl}.fifo`)
    expect(JSON.parse(example('sqs fifo'))).toEqual({ MessageGroupId, MessageDeduplicationId })
  })

  it('shows what a subscriber of an SNS topic gets, and that it is what SQS gets with raw message delivery', () => {
    const { Message, MessageAttributes } = sns('cloudevents')
    const envelope = JSON.parse(example('sns envelope')) as Readonly<Record<string, unknown>>
    expect(envelope).toMatchObject({ Type: 'Notification', TopicArn: topicArn, Message })
    const attributes = Object.entries(MessageAttributes!).map(([name, { DataType, StringValue }]) => [
      name,
      { Type: DataType, Value: StringValue },
    ])
    expect(envelope.MessageAttributes).toEqual(Object.fromEntries(attributes))
    for (const format of ['cloudevents', 'raw'] as const) {
      const { MessageBody, MessageAttributes } = sqs(format)
      expect(sns(format)).toEqual({ Message: MessageBody, MessageAttributes })
    }
  })

  it('shows what a FIFO topic gets besides', () => {
    const { MessageGroupId, MessageDeduplicationId } = sns('cloudevents', `${topicArn}.fifo`)
    expect(JSON.parse(example('sns fifo'))).toEqual({ MessageGroupId, MessageDeduplicationId })
  })

  it.each(['cloudevents', 'raw'] as const)("shows what a rule's target gets of an EventBridge entry (%s)", (format) => {
    const entry = eventBridge(format)
    const text = example(`eventbridge ${format}`)
    expect(text).toContain(`"detail": ${entry.Detail!}\n`)
    expect(JSON.parse(text)).toMatchObject({
      source: entry.Source,
      'detail-type': entry.DetailType,
      resources: entry.Resources ?? [],
      time: entry.Time!.toISOString().replace('.123', ''),
    })
  })

  it('gives the limits that the code keeps', () => {
    const number = (value: number) => value.toLocaleString('en-US')
    const row = (...cells: readonly (number | string)[]) =>
      `| ${cells.map((cell) => (typeof cell === 'number' ? number(cell) : cell)).join(' | ')} |`
    expect(document).toContain(row('entries of a request', SQS_ENTRIES, SNS_ENTRIES, EVENTBRIDGE_ENTRIES))
    const bytes = [MESSAGE_LIMITS.sqs, MESSAGE_LIMITS.sns, MESSAGE_LIMITS.eventbridge].map(({ defaultBytes }) => defaultBytes)
    expect(document).toContain(row('bytes of a message, and of a request', ...bytes))
    expect(document).toContain(`\`${logCatalogue['destination-unchecked'].text}\``)
  })
})
