import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventBridgeDestination } from '../../src/core/destination.js'
import type { OutboundEvent } from '../../src/core/event.js'
import type { EntryAnswer } from '../../src/core/outcome.js'
import type { Message } from '../../src/core/ports.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import type { EventBridgeEntry } from '../../src/publishers/eventbridge/entry.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { outboundEvent } from '../support/outbound-event.js'
import { startScriptedService, testCredentials, type ScriptedService } from '../support/scripted-service.js'

const traceHeader = 'Root=1-67891233-abcdef012345678912345678;Parent=53995c3f42cd8ad8;Sampled=1'

let service: ScriptedService
let client: ReturnType<typeof createEventBridgeClient>

beforeAll(async () => {
  service = await startScriptedService()
  client = createEventBridgeClient({ requestTimeoutMs: 5000 }, { ...testCredentials, endpoint: service.endpoint })
})

afterAll(async () => {
  client.destroy()
  await service.stop()
})

const publisherFor = (changes: Partial<EventBridgeDestination> = {}) =>
  createEventBridgePublisher({ client, destination: { type: 'eventbridge', eventBusName: 'bus', ...changes }, source: 'orders' })

function prepare(event: OutboundEvent, changes: Partial<EventBridgeDestination> = {}): Message<EventBridgeEntry> {
  const preparation = publisherFor(changes).prepare(event)
  if (!preparation.ok) throw new Error(preparation.reason)
  return preparation.message
}

async function answersTo(body: unknown): Promise<readonly EntryAnswer[]> {
  service.script({ status: 200, body })
  const answer = await publisherFor().publish(['a', 'b', 'c'].map((id) => prepare(outboundEvent({ id }))))
  if (answer.kind !== 'answered') throw new Error(`${answer.code}: ${answer.reason}`)
  return answer.entries
}

describe('an EventBridge entry', () => {
  it('has the CloudEvent as its detail', () => {
    const event = outboundEvent({ headers: JSON.stringify({ 'X-Amzn-Trace-Id': traceHeader, type: 'clash' }) })
    expect(publisherFor().prepare(event)).toMatchObject({ ok: true, droppedHeaders: 1 })
    expect(prepare(event).entry).toEqual({
      EventBusName: 'bus',
      Source: 'orders',
      DetailType: 'OrderCreated',
      Time: new Date('2026-11-29T10:00:00.123Z'),
      TraceHeader: traceHeader,
      Detail:
        '{"specversion":"1.0","id":"0197f3a2-5b1c-7d3e-8f00-0123456789ab","source":"orders","type":"OrderCreated",' +
        '"time":"2026-11-29T10:00:00.123Z","datacontenttype":"application/json","eventversion":1,' +
        `"xamzntraceid":"${traceHeader}","data":{"orderId": 42}}`,
    })
  })

  it('in the raw format has the payload as its detail and the id in its resources', () => {
    const event = outboundEvent({ payload: ' {"orderId": 42}' })
    expect(prepare(event, { format: 'raw' }).entry).toMatchObject({ Detail: ' {"orderId": 42}', Resources: [event.id] })
    expect(prepare(event).entry).not.toHaveProperty('Resources')
  })

  it('is refused in the raw format if the payload is not an object; as a CloudEvent any payload goes', () => {
    for (const payload of ['[{}]', '42', 'null', ' true']) {
      expect(publisherFor({ format: 'raw' }).prepare(outboundEvent({ payload }))).toMatchObject({
        ok: false,
        code: 'DetailNotObject',
      })
      expect(publisherFor().prepare(outboundEvent({ payload }))).toMatchObject({ ok: true })
    }
  })

  it('is refused if the event type exceeds 128 characters', () => {
    expect(publisherFor().prepare(outboundEvent({ eventType: 'x'.repeat(128) }))).toMatchObject({ ok: true })
    expect(publisherFor().prepare(outboundEvent({ eventType: 'x'.repeat(129) }))).toEqual({
      ok: false,
      code: 'DetailTypeTooLong',
      reason: 'the event type has 129 characters, EventBridge takes 128: use a shorter event type',
    })
  })

  it('is measured by the formula of EventBridge', () => {
    const event = outboundEvent({ id: 'id', eventType: 'é', payload: '{"a":"€"}' })
    expect(prepare(event, { format: 'raw' }).bytes).toBe(14 + 'orders'.length + 2 + 11 + 2)
    const timeless = prepare({ ...event, createdAtMs: 9.2e15 }, { format: 'raw' })
    expect(timeless.entry).not.toHaveProperty('Time')
    expect(timeless.bytes).toBe('orders'.length + 2 + 11 + 2)
  })

  it('is refused above 1,000,000 bytes, or what the destination is set to, but never allowed more', () => {
    const overhead = prepare(outboundEvent({ payload: '{"a":""}' }), { format: 'raw' }).bytes
    const event = (bytes: number) => outboundEvent({ payload: `{"a":"${'x'.repeat(bytes - overhead)}"}` })
    expect(publisherFor({ format: 'raw', maxBytes: 1_048_576 }).prepare(event(1_000_000))).toMatchObject({ ok: true })
    expect(publisherFor({ format: 'raw', maxBytes: 1_048_576 }).prepare(event(1_000_001))).toMatchObject({ code: 'TooLarge' })
    expect(publisherFor({ format: 'raw', maxBytes: 2000 }).prepare(event(2001))).toEqual({
      ok: false,
      code: 'TooLarge',
      reason:
        'the message has 2001 bytes, the bus takes 2000 (the setting maxBytes of the destination): store the data elsewhere and put a reference to it into the payload',
    })
    expect(publisherFor().limits).toEqual({ maxEntries: 10, maxBytes: 1_000_000, maxBytesFrom: 'the limit of EventBridge' })
  })

  it('has no trace header that EventBridge would refuse', () => {
    for (const header of ['x'.repeat(501), 'Root=\u0007', 'größe', '']) {
      const event = outboundEvent({ headers: JSON.stringify({ 'x-amzn-trace-id': header }) })
      expect(prepare(event).entry).not.toHaveProperty('TraceHeader')
    }
  })
})

describe('the answer of EventBridge', () => {
  it('is read by index, though its status is 200', async () => {
    const entries = await answersTo({
      FailedEntryCount: 1,
      Entries: [{ EventId: 'm-a' }, { ErrorCode: 'InternalFailure', ErrorMessage: 'try again' }, { EventId: 'm-c' }],
    })
    expect(entries).toEqual([
      { kind: 'accepted', messageId: 'm-a' },
      { kind: 'refused', fault: 'transient', code: 'InternalFailure', reason: 'try again' },
      { kind: 'accepted', messageId: 'm-c' },
    ])
    expect(service.requests).toHaveLength(1)
    expect(service.requests[0]).toMatchObject({
      target: 'AWSEvents.PutEvents',
      body: { Entries: [{ EventBusName: 'bus', Source: 'orders' }, {}, {}] },
    })
  })

  it('leaves an entry with neither id nor error missing, and takes an error for more than an id', async () => {
    const entries = await answersTo({
      FailedEntryCount: 0,
      Entries: [{}, { EventId: 'm', ErrorCode: 'InternalFailure' }, { EventId: 'm-c' }],
    })
    expect(entries.map(({ kind }) => kind)).toEqual(['missing', 'refused', 'accepted'])
  })

  it('of another length than the request says nothing about any entry', async () => {
    for (const Entries of [
      undefined,
      [],
      [{ EventId: 'm-1' }, { EventId: 'm-2' }],
      Array.from({ length: 4 }, () => ({ EventId: 'm' })),
    ]) {
      const entries = await answersTo({ FailedEntryCount: 0, Entries })
      expect(entries.map(({ kind }) => kind)).toEqual(['missing', 'missing', 'missing'])
    }
  })

  it('says whose fault a refused entry is', async () => {
    const fault = async (ErrorCode: string, ErrorMessage?: string) => {
      const [entry] = await answersTo({ FailedEntryCount: 1, Entries: [{ ErrorCode, ErrorMessage }, {}, {}] })
      return entry?.kind === 'refused' ? entry.fault : entry?.kind
    }
    expect(await fault('MalformedDetail', 'Detail is malformed.')).toBe('event')
    expect(await fault('InvalidArgument', 'Parameter DetailType is not valid. Reason: too long')).toBe('event')
    expect(await fault('InvalidArgument', 'Parameter EventBusName is not valid.')).toBe('destination')
    expect(await fault('InvalidArgument', 'Parameter Source is not valid.')).toBe('destination')
    for (const code of [
      'ThrottlingException',
      'AccessDeniedException',
      'InvalidAccountIdException',
      'NotAuthorizedForSourceException',
      'NotAuthorizedForDetailTypeException',
      'ResourceNotFoundException',
    ]) {
      expect(await fault(code)).toBe('destination')
    }
    for (const code of ['InternalFailure', 'InternalException', 'RedactionFailure', 'SomethingNew']) {
      expect(await fault(code)).toBe('transient')
    }
  })
})
