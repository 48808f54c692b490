import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cloudEvent, rawEvent } from '../../src/core/cloud-event.js'
import { utf8Bytes } from '../../src/core/json-text.js'
import { outboundEvent } from '../support/outbound-event.js'

/** Any UTF-16 at all, halves of surrogate pairs and non-characters more often than chance would have it. */
const text = fc
  .array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\uFFFE', '\uFFFF', '\uD800', '\uDC00', '😀', '"', '\\')))
  .map((parts) => parts.join(''))

const json = fc.jsonValue().chain((value) => text.map((wild) => JSON.stringify({ value, wild, [wild]: wild })))

/** JSON.stringify escapes lone surrogates; drivers do not: put them back raw. */
const rawJson = json.map((value) =>
  value.replace(/\\u(d[89a-f][0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
)

const OUTSIDE_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u

describe('a CloudEvent', () => {
  it('is valid JSON of allowed characters with an equal payload, whatever the event holds', () => {
    fc.assert(
      fc.property(rawJson, text, fc.option(text), fc.dictionary(text, text), (payload, key, aggregateId, headers) => {
        const event = outboundEvent({ payload, orderingKey: key, aggregateId, headers: JSON.stringify(headers) })
        const { text: encoded, droppedHeaders } = cloudEvent(event, { source: 'orders' })
        expect(encoded).not.toMatch(OUTSIDE_XML)
        const decoded = JSON.parse(encoded) as Record<string, unknown>
        expect(decoded.data).toEqual(JSON.parse(payload))
        expect(decoded.partitionkey).toBe(key)
        const extensions = Object.keys(decoded).length - 10
        expect(extensions + droppedHeaders).toBe(Object.keys(headers).length)
        for (const name of Object.keys(decoded)) expect(name).toMatch(/^[a-z0-9]{1,20}$/)
      }),
    )
  })

  it('has the payload verbatim if no character of it is forbidden', () => {
    fc.assert(
      fc.property(fc.json(), (payload) => {
        fc.pre(!OUTSIDE_XML.test(payload))
        expect(cloudEvent(outboundEvent({ payload }), { source: 'orders' }).text.endsWith(`"data":${payload}}`)).toBe(true)
        expect(rawEvent({ payload }).text).toBe(payload)
      }),
    )
  })

  it('has its bytes counted as UTF-8 has them', () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(utf8Bytes(value)).toBe(Buffer.byteLength(value, 'utf8'))
      }),
    )
  })
})
