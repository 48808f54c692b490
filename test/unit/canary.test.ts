import { readFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { canary, canaryPattern, type CanaryEvent } from '../../src/core/canary.js'
import { compilePattern } from '../../src/local/eventbridge/pattern.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'

const writtenAt = '2026-11-29T10:00:00.250Z'
const payload = { installation: 'orders', destination: 'bus' }

/** What a rule brings: the canary of a destination, as its format has it. */
function returned(format: 'cloudevents' | 'raw', changes: Readonly<Record<string, unknown>> = {}) {
  return {
    'detail-type': 'OutboxCanary',
    source: 'shop',
    // EventBridge gives whole seconds
    time: '2026-11-29T10:00:00Z',
    resources: [],
    detail: format === 'raw' ? payload : { specversion: '1.0', type: 'OutboxCanary', time: writtenAt, data: payload },
    ...changes,
  }
}

describe('the canary', () => {
  let telemetry: RecordingTelemetry
  let written: CanaryEvent[]
  let nowMs: number
  const run = (event: unknown, destinations = ['bus', 'other']) =>
    canary({
      event,
      installation: 'orders',
      destinations,
      write: (events) => {
        written.push(...events)
        return Promise.resolve()
      },
      clock: { epochMs: () => nowMs },
      telemetry,
    })

  beforeEach(() => {
    telemetry = new RecordingTelemetry()
    written = []
    nowMs = Date.parse(writtenAt) + 1500
  })

  it.each([[{}], [null], [{ 'detail-type': 'Scheduled Event', source: 'aws.scheduler' }]])(
    'writes one event for each destination when its schedule comes with %j',
    async (event) => {
      expect(await run(event)).toEqual({ kind: 'written', destinations: ['bus', 'other'] })
      expect(written).toEqual(
        ['bus', 'other'].map((destination) => ({
          eventType: 'OutboxCanary',
          destination,
          payload: `{"installation":"orders","destination":"${destination}"}`,
        })),
      )
      expect(telemetry.metrics).toEqual([])
    },
  )

  it('writes nothing where there is no bus to watch', async () => {
    expect(await run({}, [])).toEqual({ kind: 'written', destinations: [] })
    expect(written).toEqual([])
  })

  it('measures the seconds since the database wrote the event that comes back, to the millisecond', async () => {
    expect(await run(returned('cloudevents'))).toEqual({ kind: 'received', destination: 'bus', ageSeconds: 1.5 })
    expect(telemetry.metrics).toEqual([{ name: 'CanaryAge', value: 1.5, destination: 'bus' }])
    expect(written).toEqual([])
  })

  it('measures a raw one by the envelope, in whole seconds', async () => {
    expect(await run(returned('raw'))).toMatchObject({ ageSeconds: 1.75 })
  })

  it('never measures less than nothing, whatever the clocks say', async () => {
    nowMs = Date.parse(writtenAt) - 400
    expect(await run(returned('cloudevents'))).toMatchObject({ ageSeconds: 0 })
  })

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['another installation', { detail: { ...payload, installation: 'billing' } }],
    ['a destination that it does not watch', { detail: { ...payload, destination: 'gone' } }],
    ['nobody', { detail: {} }],
    ['a time that is none', { time: 'soon' }],
    ['no detail', { detail: null }],
  ])('ignores one of %s, and does not answer it with another', async (_what, changes) => {
    expect(await run(returned('raw', changes))).toEqual({ kind: 'ignored' })
    expect(telemetry.metrics).toEqual([])
    expect(telemetry.logged('canary-ignored')).toHaveLength(1)
    expect(written).toEqual([])
  })
})

describe('the pattern by which docs/messages.md leaves canaries out', () => {
  it('does, and nothing else of its source', () => {
    const [, pattern = ''] = /^(\{ "source".*anything-but.*\})$/m.exec(readFileSync('docs/messages.md', 'utf8')) ?? []
    const matches = compilePattern(pattern)
    expect(matches(returned('cloudevents', { source: 'orders' }))).toBe(false)
    expect(matches(returned('cloudevents', { source: 'orders', 'detail-type': 'OrderCreated' }))).toBe(true)
  })
})

describe('the pattern of a canary rule', () => {
  const matches = (format: 'cloudevents' | 'raw', event: unknown) =>
    compilePattern(JSON.stringify(canaryPattern({ source: 'shop', ...payload, format })))(event)

  it.each(['cloudevents', 'raw'] as const)('matches the canaries of its destination in the format %s, and no other', (format) => {
    expect(matches(format, returned(format))).toBe(true)
    expect(matches(format, returned(format === 'raw' ? 'cloudevents' : 'raw'))).toBe(false)
    expect(matches(format, returned(format, { source: 'billing' }))).toBe(false)
    expect(matches(format, returned(format, { 'detail-type': 'OrderCreated' }))).toBe(false)
    for (const other of [{ installation: 'billing' }, { destination: 'other' }]) {
      const detail = { ...payload, ...other }
      expect(matches(format, returned(format, { detail: format === 'raw' ? detail : { data: detail } }))).toBe(false)
    }
  })
})
