import { describe, expect, it } from 'vitest'
import type { ClaimedEvent } from '../../src/core/event.js'
import type { Outcome } from '../../src/core/outcome.js'
import { reportSettled } from '../../src/core/settled-report.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'

const answer = { published: 1, retried: 0, held: 0, failed: 0, freed: 0, givenBack: 1, kept: 0, settledBefore: 0 }

describe('the relays that ended with an event alone in hand', () => {
  it.each<[string, number, Outcome]>([
    ['counted when it is delivered', 2, { kind: 'published', destination: 'a', messageId: 'm' }],
    ['counted when its destination put it aside', 2, { kind: 'hold', destination: 'a', errorCode: 'AccessDenied', error: 'no' }],
    ['not counted yet when it is put aside unsent', 0, { kind: 'hold', destination: 'a', errorCode: null, error: null }],
  ])('are %s', (_, crashes, outcome) => {
    const telemetry = new RecordingTelemetry()
    const totals = { claims: 0, claimed: 0, published: 0, retried: 0, held: 0, failed: 0, unrouted: 0, leaseLost: 0 }
    const event = { id: 'e', starts: 2, dueAtMs: 0 } as ClaimedEvent
    reportSettled([{ id: 'e', attempts: 0, outcome }], answer, { kind: 'recorded' }, () => event, {
      telemetry,
      totals,
      clock: systemClock,
    })
    expect(telemetry.sum('CrashedRelays')).toBe(crashes)
  })
})
