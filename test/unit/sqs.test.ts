import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SqsDestination } from '../../src/core/destination.js'
import type { OutboundEvent } from '../../src/core/event.js'
import type { EntryAnswer } from '../../src/core/outcome.js'
import type { Message } from '../../src/core/ports.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import type { SqsEntry } from '../../src/publishers/sqs/entry.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { outboundEvent } from '../support/outbound-event.js'
import { startScriptedService, testCredentials, type ScriptedService } from '../support/scripted-service.js'

const queueUrl = 'https://sqs.us-east-1.amazonaws.com/123456789012/orders'
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

let service: ScriptedService
let client: ReturnType<typeof createSqsClient>

beforeAll(async () => {
  service = await startScriptedService()
  client = createSqsClient({ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: service.endpoint })
})

afterAll(async () => {
  client.destroy()
  await service.stop()
})

const publisherFor = (changes: Partial<SqsDestination> = {}, ownMaxBytes?: number) =>
  createSqsPublisher({ client, destination: { type: 'sqs', queueUrl, ...changes }, source: 'orders', ownMaxBytes })

/** A payload whose message, by the overhead of a raw one, has this many bytes. */
const payload = (bytes: number) => {
  const overhead = prepare(outboundEvent({ payload: '""' }), { format: 'raw' }).bytes
  return `"${'x'.repeat(bytes - overhead)}"`
}

function prepare(event: OutboundEvent, changes: Partial<SqsDestination> = {}): Message<SqsEntry> {
  const preparation = publisherFor(changes).prepare(event)
  if (!preparation.ok) throw new Error(preparation.reason)
  return preparation.message
}

const string = (StringValue: string) => ({ DataType: 'String', StringValue })
const threeMessages = () => ['a', 'b', 'c'].map((id) => prepare(outboundEvent({ id })))

async function answersTo(body: unknown): Promise<readonly EntryAnswer[]> {
  service.script({ status: 200, body })
  const answer = await publisherFor().publish(threeMessages())
  if (answer.kind !== 'answered') throw new Error(`${answer.code}: ${answer.reason}`)
  return answer.entries
}

describe('an SQS message', () => {
  it('has the CloudEvent as its body, and id, type and trace as attributes', () => {
    const event = outboundEvent({ headers: JSON.stringify({ traceparent, tenant: 't1', id: 'clash' }) })
    const preparation = publisherFor().prepare(event)
    expect(preparation).toMatchObject({ ok: true, droppedHeaders: 1 })
    expect(prepare(event).entry).toEqual({
      MessageBody:
        '{"specversion":"1.0","id":"0197f3a2-5b1c-7d3e-8f00-0123456789ab","source":"orders","type":"OrderCreated",' +
        '"time":"2026-11-29T10:00:00.123Z","datacontenttype":"application/json","eventversion":1,' +
        `"traceparent":"${traceparent}","tenant":"t1","data":{"orderId": 42}}`,
      MessageAttributes: { eventId: string(event.id), eventType: string('OrderCreated'), traceparent: string(traceparent) },
    })
  })

  it('in the raw format is the payload alone, with the id in an attribute', () => {
    const event = outboundEvent({ payload: '[1, 2]' })
    expect(prepare(event, { format: 'raw' }).entry).toEqual({
      MessageBody: '[1, 2]',
      MessageAttributes: { eventId: string(event.id), eventType: string('OrderCreated') },
    })
  })

  it('has no trace attribute if the header is nothing that an attribute may hold', () => {
    const event = outboundEvent({ headers: JSON.stringify({ traceparent: '00-\u0000' }) })
    expect(Object.keys(prepare(event).entry.MessageAttributes ?? {})).toEqual(['eventId', 'eventType'])
  })

  it('counts body, attribute names, types and values in bytes of UTF-8', () => {
    const event = outboundEvent({ id: 'id', eventType: 'é', payload: '{"a":"€"}' })
    expect(prepare(event, { format: 'raw' }).bytes).toBe(11 + ('eventId'.length + 6 + 2) + ('eventType'.length + 6 + 2))
  })

  it('is refused if it exceeds what the queue takes, with both numbers; one byte less is sent', () => {
    expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload: payload(1_048_576) }))).toMatchObject({ ok: true })
    expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload: payload(1_048_577) }))).toEqual({
      ok: false,
      code: 'TooLarge',
      reason:
        'the message has 1048577 bytes, the queue takes 1048576 (the limit of SQS): store the data elsewhere and put a reference to it into the payload',
    })
    expect(publisherFor({ format: 'raw', maxBytes: 2000 }).prepare(outboundEvent({ payload: payload(2001) }))).toMatchObject({
      code: 'TooLarge',
    })
  })

  it('is held to the smallest of what SQS takes, what the queue itself says and what the destination is set to', () => {
    const limits = (ownMaxBytes: number | undefined, maxBytes?: number) => publisherFor({ maxBytes }, ownMaxBytes).limits
    const all = { maxEntries: 10 }
    const attribute = 'its attribute MaximumMessageSize'
    const setting = 'the setting maxBytes of the destination'
    expect(limits(undefined)).toEqual({ ...all, maxBytes: 1_048_576, maxBytesFrom: 'the limit of SQS' })
    expect(limits(undefined, 2000)).toEqual({ ...all, maxBytes: 2000, maxBytesFrom: setting })
    expect(limits(262_144)).toEqual({ ...all, maxBytes: 262_144, maxBytesFrom: attribute })
    expect(limits(262_144, 2000)).toEqual({ ...all, maxBytes: 2000, maxBytesFrom: setting })
    expect(limits(262_144, 300_000)).toEqual({ ...all, maxBytes: 262_144, maxBytesFrom: attribute })
    expect(publisherFor({}, 2000).prepare(outboundEvent({ payload: payload(2001) }))).toMatchObject({
      code: 'TooLarge',
      reason: expect.stringContaining('the queue takes 2000 (its attribute MaximumMessageSize)') as string,
    })
  })

  it('is refused if its event type has characters that SQS forbids; elsewhere they travel as escapes', () => {
    for (const eventType of ['Order\u0001', 'Order\uFFFE']) {
      expect(publisherFor().prepare(outboundEvent({ eventType }))).toMatchObject({ ok: false, code: 'InvalidCharacters' })
    }
    expect(prepare(outboundEvent({ payload: '{"a":"\uFFFF"}' }), { format: 'raw' }).entry.MessageBody).toBe('{"a":"\\uffff"}')
  })

  it('is refused if it is empty', () => {
    expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload: '' }))).toMatchObject({
      ok: false,
      code: 'EmptyBody',
    })
  })
})

describe('a message to a FIFO queue', () => {
  const fifo = { queueUrl: `${queueUrl}.fifo` }
  const ids = (changes: Partial<OutboundEvent>) => {
    const { MessageGroupId, MessageDeduplicationId } = prepare(outboundEvent({ id: 'e-1', ...changes }), fifo).entry
    return [MessageGroupId, MessageDeduplicationId]
  }

  it('has the ordering key as its group, else the event id, and the event id for deduplication', () => {
    expect(ids({ orderingKey: 'customer-7' })).toEqual(['customer-7', 'e-1'])
    expect(ids({})).toEqual(['e-1', 'e-1'])
    expect(prepare(outboundEvent({ orderingKey: 'customer-7' })).entry).not.toHaveProperty('MessageGroupId')
  })

  it('has the SHA-256 of a key that FIFO does not allow as its group', () => {
    const sha256 = (key: string) => createHash('sha256').update(key, 'utf8').digest('hex')
    for (const orderingKey of ['customer 7', 'größe', 'k'.repeat(129), '']) {
      expect(ids({ orderingKey })).toEqual([sha256(orderingKey), 'e-1'])
    }
    expect(ids({ orderingKey: 'k'.repeat(128) })).toEqual(['k'.repeat(128), 'e-1'])
    expect(ids({ orderingKey: '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~' })[0]).toBe('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~')
  })

  it('has a deduplication id of its own after each replay', () => {
    expect(ids({ replays: 2 })).toEqual(['e-1', 'e-1-r2'])
  })
})

describe('the answer of SQS', () => {
  it('is read by Id, whatever its order, and a request carries the queue and each entry under its index', async () => {
    const entries = await answersTo({
      Successful: [
        { Id: '2', MessageId: 'm-c', MD5OfMessageBody: 'not looked at' },
        { Id: '0', MessageId: 'm-a', MD5OfMessageBody: 'x' },
      ],
      Failed: [{ Id: '1', Code: 'InternalError', Message: 'try again', SenderFault: false }],
    })
    expect(entries).toEqual([
      { kind: 'accepted', messageId: 'm-a' },
      { kind: 'refused', fault: 'transient', code: 'InternalError', reason: 'try again' },
      { kind: 'accepted', messageId: 'm-c' },
    ])
    expect(service.requests).toHaveLength(1)
    expect(service.requests[0]).toMatchObject({
      target: 'AmazonSQS.SendMessageBatch',
      body: { QueueUrl: queueUrl, Entries: [{ Id: '0' }, { Id: '1' }, { Id: '2' }] },
    })
  })

  it('may lack either list', async () => {
    const Successful = ['0', '1', '2'].map((Id) => ({ Id, MessageId: Id, MD5OfMessageBody: '' }))
    expect((await answersTo({ Successful })).map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'accepted'])
    const Failed = ['0', '1', '2'].map((Id) => ({ Id, Code: 'InvalidMessageContents', SenderFault: true }))
    expect((await answersTo({ Failed })).map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused'])
    expect((await answersTo({})).map(({ kind }) => kind)).toEqual(['missing', 'missing', 'missing'])
  })

  it('leaves an entry that neither list names missing, and one that both name refused', async () => {
    const entries = await answersTo({
      Successful: [
        { Id: '0', MessageId: 'm' },
        { Id: '7', MessageId: 'stranger' },
      ],
      Failed: [{ Id: '0', Code: 'InternalError', SenderFault: false }],
    })
    expect(entries.map(({ kind }) => kind)).toEqual(['refused', 'missing', 'missing'])
  })

  it('says whose fault a refused entry is', async () => {
    const fault = async (Code: string | undefined, SenderFault: boolean, Message?: string) => {
      const [entry] = await answersTo({ Failed: [{ Id: '0', Code, SenderFault, Message }] })
      return entry?.kind === 'refused' ? entry.fault : entry?.kind
    }
    // permanent, as SQS says with SenderFault, or as the code says to whoever forgets it
    expect(await fault('InvalidParameterValue', true, 'Message must be shorter than 262144 bytes.')).toBe('event')
    expect(await fault('InvalidMessageContents', false)).toBe('event')
    expect(await fault('SomethingNew', true)).toBe('event')
    // nothing an event could cause, whatever SenderFault says
    for (const code of [
      'AccessDenied',
      'AccessDeniedException',
      'AWS.SimpleQueueService.NonExistentQueue',
      'KmsAccessDenied',
      'KMS.DisabledException',
      'KmsThrottled',
      'RequestThrottled',
      'ThrottlingException',
    ]) {
      expect(await fault(code, true)).toBe('destination')
    }
    expect(
      await fault('InvalidParameterValue', true, 'The request includes a parameter that is not valid for this queue type'),
    ).toBe('destination')
    expect(await fault('InternalError', false)).toBe('transient')
    expect(await fault(undefined, false)).toBe('transient')
  })
})
