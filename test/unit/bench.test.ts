import { describe, expect, it } from 'vitest'
import { percentile, spread } from '../../bench/support/figures.js'
import { readOptions } from '../../bench/support/options.js'
import { asJson, asText } from '../../bench/support/report.js'

describe('figures of a bench', () => {
  it('are the smallest value that the share of all does not exceed', () => {
    const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
    expect([percentile(hundred, 0.5), percentile(hundred, 0.99), percentile(hundred, 1)]).toEqual([50, 99, 100])
    expect(spread([7.26], 1)).toEqual({ p50: 7.3, p99: 7.3, max: 7.3 })
    expect(percentile([], 0.99)).toBeNaN()
  })

  it('miss their limit when they are above it, or not there at all', () => {
    const where = { date: '2026-01-01T00:00:00.000Z', machine: 'any', loadBefore: 0 }
    const limits = [
      { what: 'a', value: 2, allowed: 2 },
      { what: 'b', value: 3, allowed: 2 },
      { what: 'c', value: Number.NaN, allowed: 2 },
    ]
    const report = { tables: { 'of it': [{ load: '20/s', p50: 7 }] }, limits }
    expect(asText('bench', {}, where, report)).toMatch(/load {2}p50\n {2}20\/s {4}7\n\nkept +a: 2.*\nMISSED b: 3.*\nMISSED c/)
    const json = JSON.parse(asJson('bench', {}, where, report)) as { limits: { kept: boolean }[] }
    expect(json.limits.map(({ kept }) => kept)).toEqual([true, false, false])
  })
})

describe('options of a bench', () => {
  const definitions = { seconds: { default: 600, min: 1, doc: 'of load' }, rate: { default: [20], doc: 'events a second' } }
  const read = (...args: string[]) => readOptions('latency', definitions, args)

  it('have defaults, and take numbers and lists of them', () => {
    expect(read()).toEqual({ kind: 'run', output: 'text', values: { seconds: 600, rate: [20] } })
    expect(read('--json', '--seconds', '5', '--rate', '1,0.5')).toEqual({
      kind: 'run',
      output: 'json',
      values: { seconds: 5, rate: [1, 0.5] },
    })
  })

  it('are refused with the value seen and the value allowed', () => {
    expect(() => read('--seconds', '0')).toThrow('--seconds is "0"; allowed: a number, at least 1')
    expect(() => read('--rate', '1,x')).toThrow('--rate is "1,x"; allowed: numbers, separated by commas, each at least 0')
    expect(() => read('--speed', '1')).toThrow("Unknown option '--speed'")
  })
})
