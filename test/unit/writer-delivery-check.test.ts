import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { relaySettings } from '../../src/config/settings.js'
import type { Destination } from '../../src/core/destination.js'
import { ConfigurationError, InvalidEventError } from '../../src/core/errors.js'
import type { Publisher } from '../../src/core/ports.js'
import { entryProblem } from '../../src/local/eventbridge/entry-problem.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { createDeliveryCheck, type DeliveryOptions } from '../../src/writer/delivery-check.js'
import type { NewEvent } from '../../src/writer/new-event.js'
import { rowOf } from '../../src/writer/validate-event.js'
import { outboundEvent } from '../support/outbound-event.js'

const id = '0197f3a2-0000-7000-8000-000000000000'
const refusal = (event: NewEvent, options: DeliveryOptions): InvalidEventError | null => {
  try {
    createDeliveryCheck(options)(rowOf(event, id))
    return null
  } catch (error) {
    if (error instanceof InvalidEventError) return error
    throw error
  }
}
const to = (destination: Destination): DeliveryOptions => ({ destinations: { it: destination }, default: 'it', source: 'orders' })

const bus: Destination = { type: 'eventbridge', eventBusName: 'orders' }
const queue: Destination = { type: 'sqs', queueUrl: 'https://sqs.us-east-1.amazonaws.com/123456789012/orders' }
const topic: Destination = { type: 'sns', topicArn: 'arn:aws:sns:us-east-1:123456789012:orders' }

const client = { send: () => Promise.reject(new Error('nothing is sent')) }
const publisherOf = (destination: Destination): Pick<Publisher, 'prepare'> => {
  switch (destination.type) {
    case 'eventbridge':
      return createEventBridgePublisher({ client, destination, source: 'orders' })
    case 'sqs':
      return createSqsPublisher({ client, destination, source: 'orders' })
    case 'sns':
      return createSnsPublisher({ client, destination, source: 'orders' })
  }
}
/** What the relay's publisher makes of the row: the bytes of its message, or why it refuses it. */
const prepared = (event: NewEvent, destination: Destination) => {
  const row = rowOf(event, id)
  return publisherOf(destination).prepare(
    outboundEvent({
      id,
      eventType: row.eventType,
      eventVersion: row.eventVersion ?? 1,
      aggregateId: row.aggregateId ?? null,
      orderingKey: row.orderingKey ?? null,
      headers: row.headers ?? null,
      payload: row.payload,
    }),
  )
}

const destinations = [bus, queue, topic].flatMap((destination): (readonly [string, Destination])[] => [
  [destination.type, destination],
  [`${destination.type} raw`, { ...destination, format: 'raw' }],
  [`${destination.type} of 2,048 bytes`, { ...destination, maxBytes: 2_048 }],
])

describe.each(destinations)('For a destination of type %s the writer', (_type, destination) => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((text) => !/[\0\p{Surrogate}]/u.test(text)),
    fc.constantFrom('x'.repeat(128), 'x'.repeat(129), 'ä'.repeat(127), 'a\u0001', 'a\uffff', '\u{1f4e6}'.repeat(63)),
  )
  const events: fc.Arbitrary<NewEvent> = fc.record(
    {
      eventType: texts,
      payload: fc.oneof(
        fc.constantFrom('{}', '[]', 'null', ' {"a":1}', '{"a":"\uffff"}', { text: 'x'.repeat(1_700) }),
        fc.nat(2_000).map((length) => ({ text: 'ä'.repeat(length) })),
      ),
      eventVersion: fc.integer({ min: 0, max: 2_147_483_647 }),
      aggregateId: texts,
      orderingKey: texts,
      headers: fc.dictionary(fc.constantFrom('traceparent', 'Trace-Parent', 'tenant', 'id', 'ä'), fc.string({ maxLength: 30 }), {
        noNullPrototype: true,
      }),
    },
    { requiredKeys: ['eventType', 'payload'] },
  )

  test('refuses just what its publisher refuses', () => {
    fc.assert(
      fc.property(events, (event) => {
        const preparation = prepared(event, destination)
        expect({ event, taken: refusal(event, to(destination)) === null }).toEqual({ event, taken: preparation.ok })
      }),
      { numRuns: 300 },
    )
  })

  test('takes a message of exactly its limit, and not one byte more', () => {
    const event = (length: number): NewEvent => ({
      eventType: 'OrderCreated',
      orderingKey: 'customer-7',
      headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      payload: { text: 'x'.repeat(length) },
    })
    const small = prepared(event(0), destination)
    if (!small.ok) throw new Error(small.reason)
    const limit = destination.maxBytes ?? { eventbridge: 1_000_000, sqs: 1_048_576, sns: 262_144 }[destination.type]
    const fits = limit - small.message.bytes
    expect(prepared(event(fits), destination)).toMatchObject({ ok: true, message: { bytes: limit } })
    expect(prepared(event(fits + 1), destination)).toMatchObject({ ok: false })
    expect(refusal(event(fits), to(destination))).toBeNull()
    expect(refusal(event(fits + 1), to(destination))).toMatchObject({
      code: 'InvalidEvent',
      field: 'payload',
      message: `payload makes a message of ${limit + 1} bytes, and destination "it" takes ${limit}: store the data elsewhere and put a reference to it into the payload`,
    })
  })
})

describe('An event for EventBridge', () => {
  const levels = (depth: number) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)

  test.each<[string, string]>([
    ['the largest integer of 64 bits', '{"n":9223372036854775807}'],
    ['the smallest', '{"n":-9223372036854775808}'],
    ['one larger', '{"n":9223372036854775808}'],
    ['one smaller', '{"n":[1,-9223372036854775809]}'],
    ['a large integer in a string', '{"n":"9223372036854775808"}'],
    ['a large integer in a name', '{"9223372036854775808":1}'],
    ['a large integer behind quoted quotes', '{"a":"\\\\\\"","n":9223372036854775808}'],
    ['one that looks so inside quoted quotes', '{"a":"\\\\\\"9223372036854775808"}'],
    ['a large number that is no integer', '{"n":9223372036854775808.5,"m":1e30,"o":-12345678901234567890E-5}'],
    ['brackets in a string', `{"a":"${'['.repeat(1_001)}"}`],
    ['999 levels', levels(999)],
    ['1,000 levels', levels(1_000)],
    ['1,000 levels of arrays', `{"a":${'['.repeat(999)}${']'.repeat(999)}}`],
    ['1,001 levels', levels(1_001)],
    ['many shallow ones', `[${Array.from({ length: 2_000 }, () => '{"a":[]}').join(',')}]`],
  ])('is refused where EventBridge calls its Detail malformed, and only there: %s', (_what, payload) => {
    for (const format of ['cloudevents', 'raw'] as const) {
      const event = { eventType: 'OrderCreated', payload }
      const preparation = prepared(event, { ...bus, format })
      const byService = preparation.ok
        ? entryProblem({ ...(preparation.message.entry as object), Time: 0 })?.message
        : preparation.reason
      const byWriter = refusal(event, to({ ...bus, format }))
      expect([format, byWriter === null]).toEqual([format, byService === undefined])
      if (byWriter !== null) expect(byWriter).toMatchObject({ field: 'payload' })
    }
  })

  test('says what is wrong with it, and nothing of the payload', () => {
    const problem = (payload: unknown, destination = bus) => refusal({ eventType: 'A', payload }, to(destination))?.message
    expect(problem('{"n":98765432109876543210}')).toBe(
      'payload contains an integer beyond 64 bits, which destination "it" (EventBridge) does not take: write it as a string',
    )
    expect(problem(levels(1_200))).toBe(
      'payload is nested 1200 levels deep, and destination "it" (EventBridge) takes 999: use a flatter one',
    )
    expect(problem([1], { ...bus, format: 'raw' })).toBe(
      'payload must be a JSON object for destination "it" (EventBridge, format raw): use an object, or the format cloudevents',
    )
    expect(refusal({ eventType: 'x'.repeat(129), payload: {} }, to(bus))).toMatchObject({
      field: 'eventType',
      message: 'eventType has 129 characters, and destination "it" (EventBridge) takes 128: use a shorter one',
    })
  })

  test('may be a megabyte of escapes, or of brackets', () => {
    expect(refusal({ eventType: 'A', payload: `{"a":"${'\\n'.repeat(490_000)}"}` }, to(bus))).toBeNull()
    expect(refusal({ eventType: 'A', payload: `${'['.repeat(490_000)}${']'.repeat(490_000)}` }, to(bus))?.message).toContain(
      'nested 490000 levels deep',
    )
  })
})

describe('Where an event goes', () => {
  const options: DeliveryOptions = {
    destinations: { bus, small: { ...queue, maxBytes: 1_024 } },
    routes: [{ eventType: 'Mail*', to: 'small' }],
  }
  const large = { text: 'x'.repeat(1_024) }

  test('is decided as the relay decides it: by the row, then by the routes, then by the default', () => {
    expect(refusal({ eventType: 'MailSent', payload: large }, options)?.message).toContain('destination "small" takes 1024')
    expect(refusal({ eventType: 'MailSent', payload: large, destination: 'bus' }, options)).toBeNull()
    expect(refusal({ eventType: 'OrderCreated', payload: large, destination: 'small' }, options)?.field).toBe('payload')
    expect(refusal({ eventType: 'OrderCreated', payload: large }, { ...options, default: 'bus' })).toBeNull()
  })

  test('must be known', () => {
    expect(refusal({ eventType: 'OrderCreated', payload: {}, destination: 'buss' }, options)).toMatchObject({
      field: 'destination',
      message: 'event type "OrderCreated" goes to destination "buss", which is not configured (configured: bus, small)',
    })
    expect(refusal({ eventType: 'OrderCreated', payload: {} }, options)).toMatchObject({
      field: 'eventType',
      message: 'no route matches event type "OrderCreated", and there is no default destination',
    })
  })

  test.each<[string, unknown, string]>([
    [
      'routes[0].to',
      { destinations: { bus }, routes: [{ eventType: '*', to: 'queue' }] },
      'routes[0].to is "queue", which is no destination; configured: bus',
    ],
    [
      'default',
      { destinations: { bus }, default: 'toString' },
      'default is "toString", which is no destination; configured: bus',
    ],
    [
      'destinations.bus.type',
      { destinations: { bus: { type: 'kafka' } } },
      'destinations.bus.type is "kafka"; allowed: eventbridge, sqs, sns',
    ],
    ['destinations', { default: 'bus' }, 'destinations is absent, and routes and default name destinations of it'],
  ])('is refused with the name of the option, %s', (setting, wrong, message) => {
    const create = () => createDeliveryCheck(wrong as DeliveryOptions)
    expect(create).toThrow(ConfigurationError)
    expect(create).toThrow(expect.objectContaining({ setting, message }))
  })

  test('may be unknown to the writer: then a message has at most 1,000,000 bytes, and all else passes', () => {
    const event = (length: number): NewEvent => ({
      eventType: 'x'.repeat(200),
      payload: 'x'.repeat(length).replace(/^.*$/, '"$&"').replace(/^/, '[') + ']',
    })
    const small = prepared({ ...event(0), eventType: 'x'.repeat(100) }, bus)
    if (!small.ok) throw new Error(small.reason)
    // the type counts twice, as DetailType and in the envelope
    const fits = 1_000_000 - small.message.bytes - 2 * 100
    expect(refusal(event(fits), { source: 'orders' })).toBeNull()
    expect(refusal(event(fits + 1), { source: 'orders' })).toMatchObject({
      field: 'payload',
      message:
        'payload makes a message of 1000001 bytes, and 1000000 are allowed where the writer was not given destinations: store the data elsewhere and put a reference to it into the payload',
    })
    expect(refusal({ eventType: 'A', payload: '[9223372036854775808]', destination: 'whatever' }, {})).toBeNull()
  })

  test('counts the source of the relay, whose default it knows', () => {
    const fits = (source?: string) => {
      let low = 0
      let high = 2_000
      while (high - low > 1) {
        const middle = (low + high) >> 1
        const options = { destinations: { it: { ...queue, maxBytes: 2_000 } }, default: 'it', source }
        if (refusal({ eventType: 'A', payload: ['x'.repeat(middle)] }, options) === null) low = middle
        else high = middle
      }
      return low
    }
    expect(fits()).toBe(fits(relaySettings.source.default))
    expect(fits('x')).toBe(fits() + relaySettings.source.default!.length - 1)
  })
})
