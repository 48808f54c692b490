import type { CircuitReport } from '../store/postgres/circuit-report.js'
import { relativeText } from './event-view.js'
import { ageInWords, countOf } from './text.js'

/**
 * What a person should know of a circuit, on one line.
 *
 * @example
 * circuitText(circuit, nowMs) // 'open for 12 minutes, 9 faults, tried again in 40 seconds; 120 events aside; AccessDenied: not allowed'
 */
export function circuitText(circuit: CircuitReport, nowMs: number): string {
  const { state, openedAtMs, retryAtMs, failures, errorCode, error } = circuit
  const events = countOf(circuit.heldEvents, 'event')
  if (state === null) return `no circuit, and ${events} aside that nobody brings back`
  if (state === 'closed') return `closed; ${events} aside, coming back`
  const opened = `open for ${ageInWords((nowMs - (openedAtMs ?? nowMs)) / 1000)}, ${countOf(failures, 'fault')}`
  const tried = state === 'half-open' ? 'tried by the next relay' : `tried again ${relativeText(retryAtMs ?? nowMs, nowMs)}`
  const cause = errorCode === null ? '' : `; ${errorCode}${error === null ? '' : `: ${error}`}`
  return `${opened}, ${tried}; ${events} aside${cause}`
}

/** Whether nothing but its own cool-down keeps events from a destination. */
export const isOpen = ({ state }: CircuitReport): boolean => state === 'open' || state === 'half-open'
