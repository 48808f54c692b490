import { describe, expect, test } from 'vitest'
import type { SqlParameter } from '../../src/core/ports.js'
import { encodeParameters } from '../../src/data-api/parameters.js'
import { decodeRows } from '../../src/data-api/rows.js'

describe('Parameters travel in the wire form of their type', () => {
  test.each<[SqlParameter, object]>([
    ['text', { stringValue: 'text' }],
    ['', { stringValue: '' }],
    [true, { booleanValue: true }],
    [false, { booleanValue: false }],
    [null, { isNull: true }],
    [42, { longValue: 42 }],
    [Number.MIN_SAFE_INTEGER, { longValue: Number.MIN_SAFE_INTEGER }],
    [9_223_372_036_854_775_807n, { longValue: 9_223_372_036_854_775_807n }],
    [-9_223_372_036_854_775_808n, { longValue: -9_223_372_036_854_775_808n }],
  ])('%s', (value, field) => {
    expect(encodeParameters({ it: value })).toEqual([{ name: 'it', value: field }])
  })

  test.each<[string, unknown]>([
    ['a fraction', 1.5],
    ['a number that has lost digits', 2 ** 53],
    ['NaN', NaN],
    ['a bigint beyond 64 bits', 9_223_372_036_854_775_808n],
    ['undefined', undefined],
    ['an array', ['s3cret']],
    ['a date', new Date()],
  ])('%s is refused by the name of the parameter, without its value', (_what, value) => {
    expect(() => encodeParameters({ amount: value as SqlParameter })).toThrow(/^parameter "amount" is .*; allowed: /)
    expect(() => encodeParameters({ amount: value as SqlParameter })).not.toThrow(/s3cret/)
  })
})

describe('Rows are decoded by the type of their column', () => {
  const decode = (typeName: string, field: object) =>
    decodeRows({ columnMetadata: [{ name: 'base', label: 'it', typeName }], records: [[field as never]] })[0]!.it

  test.each([
    ['int8', { stringValue: '9223372036854775807' }, 9_223_372_036_854_775_807n],
    ['int8', { longValue: 7 }, 7n],
    ['bigserial', { stringValue: '-1' }, -1n],
    ['int4', { stringValue: '7' }, 7],
    ['int4', { longValue: 7 }, 7],
    ['int2', { stringValue: '-7' }, -7],
    ['serial', { longValue: 7 }, 7],
    ['INT4', { stringValue: '7' }, 7],
    ['bool', { booleanValue: false }, false],
    ['float8', { doubleValue: 1.5 }, 1.5],
    ['text', { stringValue: '7' }, '7'],
    ['numeric', { stringValue: '12345678901234567890.5' }, '12345678901234567890.5'],
    ['uuid', { stringValue: '0197f3a2-0000-7000-8000-000000000000' }, '0197f3a2-0000-7000-8000-000000000000'],
    ['int8', { isNull: true }, null],
  ])('%s %o', (typeName, field, value) => {
    expect(decode(typeName, field)).toBe(value)
  })

  test('an integer that lost digits on its way is refused', () => {
    expect(() => decode('int8', { longValue: 2 ** 53 })).toThrow('column "it" of the answer is an integer beyond 2^53')
  })

  test('an array or a blob is refused, with what to do', () => {
    expect(() => decode('_text', { arrayValue: { stringValues: ['a'] } })).toThrow(
      /column "it" .* type _text, .*; cast it to text/,
    )
    expect(() => decode('bytea', { blobValue: new Uint8Array(1) })).toThrow(/type bytea/)
  })

  test('a column is called by its label, and no rows are no rows', () => {
    expect(
      decodeRows({ columnMetadata: [{ name: 'id', label: 'event', typeName: 'text' }], records: [[{ stringValue: 'a' }]] }),
    ).toEqual([{ event: 'a' }])
    expect(decodeRows({})).toEqual([])
  })

  test('a value without metadata is refused', () => {
    expect(() => decodeRows({ records: [[{ stringValue: 'a' }]] })).toThrow('column 1 of the answer came without metadata')
  })
})
