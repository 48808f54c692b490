import { describe, expect, it } from 'vitest'
import { cloudEvent, rawEvent, rfc3339 } from '../../src/core/cloud-event.js'
import { reduceHeaders } from '../../src/core/cloud-event-headers.js'
import { escapeForbidden, utf8Bytes } from '../../src/core/json-text.js'
import { outboundEvent } from '../support/outbound-event.js'

const source = 'orders'

describe('a CloudEvent', () => {
  it('has exactly the fields, and the order of fields, that consumers are promised', () => {
    const event = outboundEvent({
      aggregateId: 'order-42',
      orderingKey: 'customer-7',
      headers: '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tenant":"t1"}',
    })
    expect(cloudEvent(event, { source })).toEqual({
      text:
        '{"specversion":"1.0","id":"0197f3a2-5b1c-7d3e-8f00-0123456789ab","source":"orders","type":"OrderCreated",' +
        '"time":"2026-11-29T10:00:00.123Z","subject":"order-42","datacontenttype":"application/json",' +
        '"partitionkey":"customer-7","eventversion":1,' +
        '"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tenant":"t1","data":{"orderId": 42}}',
      droppedHeaders: 0,
    })
  })

  it('leaves absent fields out', () => {
    expect(cloudEvent(outboundEvent(), { source }).text).toBe(
      '{"specversion":"1.0","id":"0197f3a2-5b1c-7d3e-8f00-0123456789ab","source":"orders","type":"OrderCreated",' +
        '"time":"2026-11-29T10:00:00.123Z","datacontenttype":"application/json","eventversion":1,"data":{"orderId": 42}}',
    )
  })

  it('has the ordering key as its subject where there is no aggregate', () => {
    expect(cloudEvent(outboundEvent({ orderingKey: 'customer-7' }), { source }).text).toContain('"subject":"customer-7"')
  })

  it('never has an empty subject, which CloudEvents forbids: an aggregate id without a character counts as none', () => {
    const keyed = outboundEvent({ aggregateId: '', orderingKey: 'customer-7' })
    expect(cloudEvent(keyed, { source }).text).toContain('"subject":"customer-7"')
    expect(cloudEvent(outboundEvent({ aggregateId: '' }), { source }).text).not.toContain('"subject"')
  })

  it('carries the payload byte for byte: key order, digits, white space and duplicate keys', () => {
    const payload = '{ "z":1, "a":9007199254740993,\n"a":1.10, "n":[1e400,-0.0], "escaped":"\\u0041\\u0000" }'
    expect(cloudEvent(outboundEvent({ payload }), { source }).text.endsWith(`"data":${payload}}`)).toBe(true)
    expect(rawEvent({ payload })).toEqual({ text: payload, droppedHeaders: 0 })
  })

  it('writes forbidden characters as escapes, in the payload and everywhere else, and nothing else', () => {
    const payload = '{"a":"x\uFFFEy\uFFFF","pair":"😀","half":"\uD800"}'
    const event = outboundEvent({ payload, orderingKey: 'k\uFFFF', headers: '{"note":"\uFFFE"}' })
    const { text } = cloudEvent(event, { source })
    expect(text).toContain('"data":{"a":"x\\ufffey\\uffff","pair":"😀","half":"\\ud800"}')
    expect(text).toContain('"partitionkey":"k\\uffff"')
    expect(text).toContain('"note":"\\ufffe"')
    expect(JSON.parse(text)).toMatchObject({ partitionkey: 'k\uFFFF', data: JSON.parse(payload) as object })
    expect(rawEvent({ payload }).text).toBe('{"a":"x\\ufffey\\uffff","pair":"😀","half":"\\ud800"}')
  })

  it('goes out without a time that RFC 3339 cannot write', () => {
    for (const createdAtMs of [9.2e15, Date.UTC(10000, 0, 1), Date.UTC(0, 0, 1) - 2000 * 365 * 86_400_000]) {
      expect(cloudEvent(outboundEvent({ createdAtMs }), { source }).text).not.toContain('"time"')
    }
    expect(rfc3339(0)).toBe('1970-01-01T00:00:00.000Z')
  })
})

describe('headers as extension attributes', () => {
  const reduce = (headers: object | null) => {
    const { attributes, dropped } = reduceHeaders(headers === null ? null : JSON.stringify(headers))
    return { attributes: Object.fromEntries(attributes), dropped }
  }

  it('have names of lower-case letters and digits, at most 20', () => {
    expect(reduce({ 'X-Correlation-Id': 'c', Größe_2: 'g', 'a-name-that-is-far-too-long': 'l' })).toEqual({
      attributes: { xcorrelationid: 'c', gre2: 'g', anamethatisfartoolon: 'l' },
      dropped: 0,
    })
  })

  it('are dropped and counted where they clash with an attribute of the event', () => {
    for (const name of ['id', 'Source', 'event-version', 'partition_key', 'data', 'dataschema', 'TIME']) {
      expect(reduce({ [name]: 'x', tenant: 't1' })).toEqual({ attributes: { tenant: 't1' }, dropped: 1 })
    }
  })

  it('are dropped and counted where they clash with an earlier header', () => {
    expect(reduce({ 'tenant-id': 'first', TenantId: 'second', tenantid: 'third' })).toEqual({
      attributes: { tenantid: 'first' },
      dropped: 2,
    })
    expect(reduce({ averyverylongheader1x: '1', averyverylongheader1y: '2' })).toEqual({
      attributes: { averyverylongheader1: '1' },
      dropped: 1,
    })
  })

  it('are dropped and counted where nothing remains of the name or the value is not a string', () => {
    expect(reduce({ '---': 'x', number: 42, nothing: null, object: {}, tenant: 't1' })).toEqual({
      attributes: { tenant: 't1' },
      dropped: 4,
    })
  })

  it('cost nothing where there are none, and never break an event', () => {
    expect(reduce(null)).toEqual({ attributes: {}, dropped: 0 })
    for (const headers of ['[]', 'null', '"x"', '{"a":']) {
      expect(reduceHeaders(headers)).toEqual({ attributes: new Map(), dropped: 1 })
    }
    expect(reduceHeaders('{"__proto__":"p"}').attributes.get('proto')).toBe('p')
  })
})

describe('JSON text', () => {
  it('counts bytes as UTF-8 does', () => {
    for (const text of ['', 'abc', 'é', '€', '😀', 'a\u0000b', '\uFFFF', 'half \uD83D', '\uDE00 half', '\uD83D\uD83D\uDE00']) {
      expect(utf8Bytes(text)).toBe(Buffer.byteLength(text, 'utf8'))
    }
  })

  it('leaves a text without forbidden characters as it is', () => {
    expect(escapeForbidden('{"a":"\\\\ufffe \uFFFD"}')).toBe('{"a":"\\\\ufffe \uFFFD"}')
  })
})
