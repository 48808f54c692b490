import { describe, expect, it } from 'vitest'
import { compilePattern } from '../../src/local/eventbridge/pattern.js'

const event = {
  source: 'shop.orders',
  'detail-type': 'OrderCreated',
  resources: ['arn:a', 'arn:b'],
  detail: {
    cents: 1250,
    state: 'NEW',
    ip: '10.1.2.3',
    note: null,
    ok: true,
    empty: '',
    path: 'a/lib/x*.png',
    lines: [
      { sku: 'a', n: 1 },
      { sku: 'b', n: 2 },
    ],
  },
}
const matches = (pattern: unknown) => compilePattern(JSON.stringify(pattern))(event)
const detail = (field: string, ...list: unknown[]) => matches({ detail: { [field]: list } })

describe('an event pattern', () => {
  it('compares values exactly, and asks for all of its fields', () => {
    expect(matches({ source: ['other', 'shop.orders'] })).toBe(true)
    expect(matches({ source: ['Shop.orders'] })).toBe(false)
    expect(matches({ source: ['shop.orders'], 'detail-type': ['OrderPaid'] })).toBe(false)
    expect(detail('note', null)).toBe(true)
    expect(detail('ok', true)).toBe(true)
    expect(detail('cents', '1250')).toBe(false)
    expect(detail('absent', null)).toBe(false)
  })

  it.each<[string, unknown, boolean]>([
    ['state', { prefix: 'N' }, true],
    ['state', { prefix: 'n' }, false],
    ['state', { prefix: { 'equals-ignore-case': 'n' } }, true],
    ['state', { suffix: 'W' }, true],
    ['state', { suffix: 'N' }, false],
    ['state', { suffix: { 'equals-ignore-case': 'w' } }, true],
    ['state', { 'equals-ignore-case': 'new' }, true],
    ['state', { 'equals-ignore-case': 'old' }, false],
    ['empty', { prefix: '' }, true],
    ['cents', { prefix: '' }, false],
    ['path', { wildcard: '*/lib/*' }, true],
    ['path', { wildcard: 'a/l?b/*' }, false],
    ['path', { wildcard: '*x\\*.png' }, true],
    ['path', { wildcard: '*y\\*.png' }, false],
    ['cents', { numeric: ['>', 1000, '<=', 1250] }, true],
    ['cents', { numeric: ['<', 1250] }, false],
    ['cents', { numeric: ['=', 1250] }, true],
    ['state', { numeric: ['>', 0] }, false],
    ['state', { exists: true }, true],
    ['state', { exists: false }, false],
    ['absent', { exists: false }, true],
    ['note', { exists: true }, true],
    ['state', { 'anything-but': 'OLD' }, true],
    ['state', { 'anything-but': ['OLD', 'NEW'] }, false],
    ['cents', { 'anything-but': [1, 2] }, true],
    ['absent', { 'anything-but': 'OLD' }, false],
    ['state', { 'anything-but': { prefix: 'N' } }, false],
    ['state', { 'anything-but': { suffix: ['X', 'Y'] } }, true],
    ['state', { 'anything-but': { 'equals-ignore-case': 'new' } }, false],
    ['path', { 'anything-but': { wildcard: '*/lib/*' } }, false],
    ['ip', { cidr: '10.1.0.0/16' }, true],
    ['ip', { cidr: '10.2.0.0/16' }, false],
    ['state', { cidr: '10.2.0.0/16' }, false],
  ])('%s: %j is %s', (field, matcher, expected) => {
    expect(detail(field, matcher)).toBe(expected)
  })

  it('looks into lists, and takes each object of a list as a whole', () => {
    expect(matches({ resources: ['arn:b'] })).toBe(true)
    expect(matches({ resources: ['arn:c'] })).toBe(false)
    expect(matches({ detail: { lines: { sku: ['b'], n: [2] } } })).toBe(true)
    expect(matches({ detail: { lines: { sku: ['a'], n: [2] } } })).toBe(false)
  })

  it('joins alternatives with $or, beside what must hold anyway', () => {
    const alternatives = [{ detail: { state: ['OLD'] } }, { detail: { cents: [{ numeric: ['>', 1000] }] } }]
    expect(matches({ source: ['shop.orders'], $or: alternatives })).toBe(true)
    expect(matches({ source: ['other'], $or: alternatives })).toBe(false)
  })

  it.each<[string, string]>([
    ['{', 'the event pattern is not JSON'],
    ['[]', 'the event pattern is not an object'],
    ['{}', 'the event pattern is empty'],
    ['{"source":"shop"}', 'source must be an object or an array'],
    ['{"source":[]}', 'source is an empty array'],
    ['{"source":[["a"]]}', 'source: a list inside a list'],
    ['{"detail":{"a":[{"contains":"x"}]}}', 'detail.a: unrecognized match type contains'],
    ['{"detail":{"a":[{"prefix":1}]}}', 'detail.a: prefix takes a string'],
    ['{"detail":{"a":[{"exists":"yes"}]}}', 'detail.a: exists takes true or false'],
    ['{"detail":{"a":[{"numeric":[">","1"]}]}}', 'detail.a: numeric compares with numbers'],
    ['{"detail":{"a":[{"wildcard":"a**b"}]}}', 'detail.a: consecutive wildcard characters'],
    ['{"detail":{"a":[{"cidr":"300.1.1.1/8"}]}}', 'detail.a: malformed CIDR 300.1.1.1/8'],
    ['{"$or":[{"source":["a"]}]}', '$or must have at least 2 alternatives'],
  ])('refuses %s', (pattern, message) => {
    expect(() => compilePattern(pattern)).toThrow(message)
  })
})
