import { describe, expect, test } from 'vitest'
import { InvalidEventError } from '../../src/core/errors.js'
import { createOutbox, type DataApiDatabase, type NewEvent } from '../../src/writer/index.js'
import { rowOf } from '../../src/writer/validate-event.js'

const id = '0197f3a2-0000-7000-8000-000000000000'
const event = (more: object): NewEvent => ({ eventType: 'OrderCreated', payload: {}, ...more })
const refusal = (more: object): InvalidEventError => {
  try {
    rowOf(event(more), id)
  } catch (error) {
    if (error instanceof InvalidEventError) return error
    throw error
  }
  throw new Error('was not refused')
}

describe('A payload', () => {
  test.each([
    [{ orderId: 42 }, '{"orderId":42}'],
    [[1, 2], '[1,2]'],
    [7, '7'],
    [true, 'true'],
    [null, 'null'],
    ['{"orderId": 12345678901234567890}', '{"orderId": 12345678901234567890}'],
    [' [1] ', ' [1] '],
    ['null', 'null'],
    ['{"half":"\\ud800"}', '{"half":"\\ud800"}'],
    [{ half: '\ud800' }, '{"half":"\\ud800"}'],
  ])('%o is written as %s', (payload, text) => {
    expect(rowOf(event({ payload }), id).payload).toBe(text)
  })

  test.each<[string, unknown, RegExp]>([
    ['a text encoded twice', '"{\\"orderId\\":42}"', /bare JSON string, so it was probably encoded twice/],
    ['the same behind white space', '\n "x"', /bare JSON string/],
    ['a text that is no JSON', 's3cret', /must be valid JSON text/],
    ['an empty text', '', /must be valid JSON text/],
    ['half of a surrogate pair', '{"a":"\ud800"}', /half of a surrogate pair/],
    ['a date', new Date(), /must not become a bare JSON string, as a Date does/],
    ['undefined', undefined, /not undefined/],
    ['a function', () => 1, /not a value of type function/],
    ['a bigint', 1n, /contains a bigint/],
    ['NaN', NaN, /must be a finite number/],
  ])('%s is refused', (_what, payload, message) => {
    const error = refusal({ payload })
    expect(error).toMatchObject({ code: 'InvalidEvent', field: 'payload' })
    expect(error.message).toMatch(message)
    expect(`${error.message} ${String(error.cause)}`).not.toContain('s3cret')
  })

  test('with a cycle is refused', () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    expect(refusal({ payload: cycle }).field).toBe('payload')
  })
})

describe('What is no list of events', () => {
  test.each<[string, unknown, string]>([
    ['an event alone', { eventType: 'OrderCreated', payload: {} }, 'events must be a list, not a value of type object'],
    ['nothing', undefined, 'events must be a list, not undefined'],
    ['a list with a hole', [{ eventType: 'OrderCreated', payload: {} }, null], 'events[1] must be an object, not null'],
  ])('is refused, and says so: %s', async (_what, events, message) => {
    const outbox = createOutbox({ database: {} as DataApiDatabase })
    const written = outbox.writeEvents({ transactionId: 't' }, events as NewEvent[])
    await expect(written).rejects.toMatchObject({ code: 'InvalidEvent', message })
  })
})

describe('A field', () => {
  test.each<[string, object]>([
    ['eventType', { eventType: '' }],
    ['eventType', { eventType: 'x'.repeat(256) }],
    ['eventType', { eventType: 'ä'.repeat(128) }],
    ['eventType', { eventType: 'a\0b' }],
    ['eventType', { eventType: undefined }],
    ['eventType', { eventType: 7 }],
    ['orderingKey', { orderingKey: '' }],
    ['orderingKey', { orderingKey: 'x'.repeat(256) }],
    ['orderingKey', { orderingKey: '\udc00' }],
    ['destination', { destination: '' }],
    ['idempotencyKey', { idempotencyKey: '' }],
    ['aggregateType', { aggregateType: 'x'.repeat(256) }],
    ['aggregateId', { aggregateId: 42 }],
    ['eventVersion', { eventVersion: 1.5 }],
    ['eventVersion', { eventVersion: 2 ** 31 }],
    ['headers', { headers: [] }],
    ['headers', { headers: new Map([['tenant', 't1']]) }],
    ['headers', { headers: new Headers({ tenant: 't1' }) }],
    ['headers', { headers: { long: 'x'.repeat(8_192) } }],
    ['headers.tenant', { headers: { tenant: 7 } }],
    ['availableAt', { availableAt: new Date(NaN) }],
    ['availableAt', { availableAt: '2026-01-01' }],
    ['availableAt', { availableAt: new Date(8.64e15) }],
  ])('%s is refused by its name: %o', (field, more) => {
    const error = refusal(more)
    expect(error.field).toBe(field)
    expect(error.message).not.toMatch(/\n/)
  })

  test('of the greatest length is taken, and so is one that is absent', () => {
    const longest = 'ä'.repeat(127) + 'x'
    expect(rowOf(event({ eventType: longest, orderingKey: longest, aggregateId: '' }), id)).toMatchObject({
      eventType: longest,
      orderingKey: longest,
      aggregateId: '',
    })
    expect(rowOf(event({ orderingKey: undefined, destination: null }), id)).toEqual({
      id,
      eventType: 'OrderCreated',
      payload: '{}',
    })
  })

  test('of headers and time become text', () => {
    expect(rowOf(event({ headers: { tenant: 't1' }, availableAt: new Date(0) }), id)).toMatchObject({
      headers: '{"tenant":"t1"}',
      availableAt: '1970-01-01T00:00:00.000Z',
    })
  })
})
