import { describe, expect, it } from 'vitest'
import { circuitText, isOpen } from '../../src/cli/circuits.js'
import type { CircuitReport } from '../../src/store/postgres/circuit-report.js'

const nowMs = Date.UTC(2026, 10, 29, 10)
const circuit: CircuitReport = {
  destination: 'queue',
  state: 'open',
  openedAtMs: nowMs - 12 * 60_000,
  retryAtMs: nowMs + 40_000,
  failures: 9,
  configuration: false,
  errorCode: 'ServiceUnavailable',
  error: 'try later',
  heldEvents: 120,
}

describe('a circuit on one line', () => {
  it.each<[string, Partial<CircuitReport>, string]>([
    ['open', {}, 'open for 12 minutes, 9 faults, tried again in 40 seconds; 120 events aside; ServiceUnavailable: try later'],
    [
      'half-open',
      { state: 'half-open', failures: 1, heldEvents: 1, error: null },
      'open for 12 minutes, 1 fault, tried by the next relay; 1 event aside; ServiceUnavailable',
    ],
    ['closed with events aside', { state: 'closed' }, 'closed; 120 events aside, coming back'],
    ['missing', { state: null }, 'no circuit, and 120 events aside that nobody brings back'],
  ])('says what there is to know when it is %s', (_, changes, text) => {
    expect(circuitText({ ...circuit, ...changes }, nowMs)).toBe(text)
  })

  it('counts as open until the probe was accepted', () => {
    const states = ['open', 'half-open', 'closed', null] as const
    expect(states.map((state) => isOpen({ ...circuit, state }))).toEqual([true, true, false, false])
  })
})
