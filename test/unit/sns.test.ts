import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SnsDestination } from '../../src/core/destination.js'
import type { OutboundEvent } from '../../src/core/event.js'
import type { EntryAnswer } from '../../src/core/outcome.js'
import type { Message } from '../../src/core/ports.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import type { SnsEntry } from '../../src/publishers/sns/entry.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { outboundEvent } from '../support/outbound-event.js'
import { snsAnswer, startScriptedService, testCredentials, type ScriptedService } from '../support/scripted-service.js'

const topicArn = 'arn:aws:sns:us-east-1:123456789012:orders'
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

let service: ScriptedService
let client: ReturnType<typeof createSnsClient>

beforeAll(async () => {
  service = await startScriptedService()
  client = createSnsClient({ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: service.endpoint })
})

afterAll(async () => {
  client.destroy()
  await service.stop()
})

const publisherFor = (changes: Partial<SnsDestination> = {}, ownMaxBytes?: number) =>
  createSnsPublisher({ client, destination: { type: 'sns', topicArn, ...changes }, source: 'orders', ownMaxBytes })

function prepare(event: OutboundEvent, changes: Partial<SnsDestination> = {}): Message<SnsEntry> {
  const preparation = publisherFor(changes).prepare(event)
  if (!preparation.ok) throw new Error(preparation.reason)
  return preparation.message
}

/** A payload whose raw message has this many bytes. */
const payload = (bytes: number) => {
  const overhead = prepare(outboundEvent({ payload: '""' }), { format: 'raw' }).bytes
  return `"${'x'.repeat(bytes - overhead)}"`
}

const string = (StringValue: string) => ({ DataType: 'String', StringValue })

const accepted = (...ids: string[]) => ids.map((id) => `<member><Id>${id}</Id><MessageId>m-${id}</MessageId></member>`).join('')

interface Failure {
  readonly id: string
  readonly code: string
  readonly senderFault: boolean
  readonly message?: string
}
const failed = (...failures: Failure[]) =>
  failures
    .map(
      ({ id, code, senderFault, message = 'no' }) =>
        `<member><Id>${id}</Id><Code>${code}</Code><Message>${message}</Message><SenderFault>${senderFault}</SenderFault></member>`,
    )
    .join('')

async function answersTo(successful: string, failures = ''): Promise<readonly EntryAnswer[]> {
  service.script(snsAnswer(successful, failures))
  const answer = await publisherFor().publish(['a', 'b', 'c'].map((id) => prepare(outboundEvent({ id }))))
  if (answer.kind !== 'answered') throw new Error(`${answer.code}: ${answer.reason}`)
  return answer.entries
}

describe('an SNS message', () => {
  it('is the CloudEvent, with id, type and trace as attributes', () => {
    const event = outboundEvent({ headers: JSON.stringify({ Traceparent: traceparent, tenant: 't1', id: 'clash' }) })
    const preparation = publisherFor().prepare(event)
    expect(preparation).toMatchObject({ ok: true, droppedHeaders: 1 })
    expect(prepare(event).entry).toEqual({
      Message:
        '{"specversion":"1.0","id":"0197f3a2-5b1c-7d3e-8f00-0123456789ab","source":"orders","type":"OrderCreated",' +
        '"time":"2026-11-29T10:00:00.123Z","datacontenttype":"application/json","eventversion":1,' +
        `"traceparent":"${traceparent}","tenant":"t1","data":{"orderId": 42}}`,
      MessageAttributes: { eventId: string(event.id), eventType: string('OrderCreated'), traceparent: string(traceparent) },
    })
  })

  it('in the raw format is the payload alone, with id, type and trace in attributes', () => {
    const event = outboundEvent({ payload: '[1, 2]', headers: JSON.stringify({ traceparent, tenant: 't1' }) })
    expect(prepare(event, { format: 'raw' }).entry).toEqual({
      Message: '[1, 2]',
      MessageAttributes: { eventId: string(event.id), eventType: string('OrderCreated'), traceparent: string(traceparent) },
    })
  })

  it('never has more attributes than a raw subscription delivers, however many headers there are', () => {
    const headers = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`header${index}`, 'x']))
    const { entry } = prepare(outboundEvent({ headers: JSON.stringify({ ...headers, traceparent }) }))
    expect(Object.keys(entry.MessageAttributes!)).toEqual(['eventId', 'eventType', 'traceparent'])
  })

  it('counts text, attribute names, types and values in bytes of UTF-8', () => {
    const event = outboundEvent({ id: 'id', eventType: 'é', payload: '{"a":"€"}' })
    expect(prepare(event, { format: 'raw' }).bytes).toBe(11 + ('eventId'.length + 6 + 2) + ('eventType'.length + 6 + 2))
  })

  it('is refused above 262,144 bytes, with both numbers and whose limit it is; one byte less is sent', () => {
    expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload: payload(262_144) }))).toMatchObject({ ok: true })
    expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload: payload(262_145) }))).toEqual({
      ok: false,
      code: 'TooLarge',
      reason:
        'the message has 262145 bytes, the topic takes 262144 (the default of SNS): store the data elsewhere and put a reference to it into the payload',
    })
  })

  it('is held to what the topic itself says and what the destination is set to, else to the default of SNS', () => {
    const limits = (ownMaxBytes: number | undefined, maxBytes?: number) => publisherFor({ maxBytes }, ownMaxBytes).limits
    const attribute = 'its attribute MaximumMessageSize'
    const setting = 'the setting maxBytes of the destination'
    expect(limits(undefined)).toEqual({ maxEntries: 10, maxBytes: 262_144, maxBytesFrom: 'the default of SNS' })
    expect(limits(1_048_576)).toMatchObject({ maxBytes: 1_048_576, maxBytesFrom: 'the limit of SNS' })
    expect(limits(500_000)).toMatchObject({ maxBytes: 500_000, maxBytesFrom: attribute })
    expect(limits(500_000, 600_000)).toMatchObject({ maxBytes: 500_000, maxBytesFrom: attribute })
    expect(limits(500_000, 2000)).toMatchObject({ maxBytes: 2000, maxBytesFrom: setting })
    // a topic that was set to more, and nobody may read it
    expect(limits(undefined, 600_000)).toMatchObject({ maxBytes: 600_000, maxBytesFrom: setting })
  })

  it('is refused if its event type has characters that SNS forbids; elsewhere they travel as escapes', () => {
    for (const eventType of ['Order\u0001', 'Order\uFFFE']) {
      expect(publisherFor().prepare(outboundEvent({ eventType }))).toMatchObject({
        ok: false,
        code: 'InvalidCharacters',
        reason: expect.stringContaining('SNS') as string,
      })
    }
    expect(prepare(outboundEvent({ payload: '{"a":"\uFFFF"}' }), { format: 'raw' }).entry.Message).toBe('{"a":"\\uffff"}')
  })

  it('is refused if it is empty, since SNS forgets such an entry', () => {
    expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload: '' }))).toMatchObject({
      ok: false,
      code: 'EmptyBody',
      reason: 'the payload is empty, which SNS does not take: use {}',
    })
  })
})

describe('a message to a FIFO topic', () => {
  const ids = (changes: Partial<OutboundEvent>) => {
    const { entry } = prepare(outboundEvent({ id: 'e-1', ...changes }), { topicArn: `${topicArn}.fifo` })
    return [entry.MessageGroupId, entry.MessageDeduplicationId]
  }

  it('has the ordering key as its group, else the event id, and the event id for deduplication', () => {
    expect(ids({ orderingKey: 'customer-7' })).toEqual(['customer-7', 'e-1'])
    expect(ids({})).toEqual(['e-1', 'e-1'])
    expect(prepare(outboundEvent({ orderingKey: 'customer-7' })).entry).not.toHaveProperty('MessageGroupId')
  })

  it('has the SHA-256 of a key that FIFO does not allow as its group, and a deduplication id of its own after each replay', () => {
    const sha256 = (key: string) => createHash('sha256').update(key, 'utf8').digest('hex')
    for (const orderingKey of ['customer 7', 'größe', 'k'.repeat(129)]) {
      expect(ids({ orderingKey, replays: 2 })).toEqual([sha256(orderingKey), 'e-1-r2'])
    }
    expect(ids({ orderingKey: 'k'.repeat(128) })[0]).toBe('k'.repeat(128))
  })
})

describe('the answer of SNS', () => {
  it('is read by Id, whatever its order, and a request carries the topic and each entry under its index', async () => {
    const entries = await answersTo(accepted('2', '0'), failed({ id: '1', code: 'InternalError', senderFault: false }))
    expect(entries).toEqual([
      { kind: 'accepted', messageId: 'm-0' },
      { kind: 'refused', fault: 'transient', code: 'InternalError', reason: 'no' },
      { kind: 'accepted', messageId: 'm-2' },
    ])
    expect(service.requests).toHaveLength(1)
    expect(service.requests[0]).toMatchObject({
      target: 'PublishBatch',
      body: {
        TopicArn: topicArn,
        'PublishBatchRequestEntries.member.1.Id': '0',
        'PublishBatchRequestEntries.member.3.Id': '2',
        'PublishBatchRequestEntries.member.3.MessageAttributes.entry.1.Value.StringValue': 'c',
      },
    })
  })

  it('leaves an entry that neither list names missing, and one that both name refused', async () => {
    const entries = await answersTo(accepted('0', '7'), failed({ id: '0', code: 'InternalError', senderFault: false }))
    expect(entries.map(({ kind }) => kind)).toEqual(['refused', 'missing', 'missing'])
    expect((await answersTo('')).map(({ kind }) => kind)).toEqual(['missing', 'missing', 'missing'])
  })

  it('says whose fault a refused entry is', async () => {
    const fault = async (code: string, senderFault: boolean, message?: string) => {
      const [entry] = await answersTo('', failed({ id: '0', code, senderFault, ...(message === undefined ? {} : { message }) }))
      return entry?.kind === 'refused' ? entry.fault : entry?.kind
    }
    expect(await fault('InvalidParameter', true, 'Invalid parameter: Message too long')).toBe('event')
    // as the code says to whoever forgets SenderFault, or the other way round
    expect(await fault('InvalidParameter', false)).toBe('event')
    expect(await fault('SomethingNew', true)).toBe('event')
    for (const code of ['AuthorizationError', 'NotFound', 'KMSAccessDenied', 'KMSOptInRequired', 'KMSThrottling', 'Throttled']) {
      expect(await fault(code, true)).toBe('destination')
    }
    expect(await fault('InvalidParameter', true, 'Invalid parameter: TopicArn')).toBe('destination')
    expect(await fault('InternalError', false)).toBe('transient')
  })
})
