import type { Random } from './clock.js'
import { UNCHARGED_CAP_MS, type RetryDelays } from './retry-delays.js'

/** Requests to a destination, in a row, that nothing was accepted of: then its circuit opens. */
export const FAULTS_THAT_OPEN = 3

/**
 * A destination's circuit, as all relays share it.
 * - `closed`: it takes events; `aside`: some are still to be brought back.
 * - `open`: nothing is sent until the cool-down is over.
 * - `half-open`: the cool-down is over; `probeEvent`, and nothing else, is sent.
 */
export interface Circuit {
  readonly destination: string
  readonly state: 'closed' | 'open' | 'half-open'
  /** Faults that opened it and kept it open; 0 if it is closed. */
  readonly failures: number
  /** The one event that may be sent; null if it is closed. */
  readonly probeEvent: string | null
  /** Milliseconds until the cool-down is over. */
  readonly retryInMs: number
  /** Whether events of the destination are put aside. */
  readonly aside: boolean
}

/** Why a destination counts as down. */
export interface Fault {
  readonly code: string
  readonly reason: string
  /** It will not heal by waiting: access denied, a missing queue or bus, a key. */
  readonly configuration: boolean
  /** There was no answer in time. */
  readonly timedOut: boolean
}

/**
 * Whether a fault opens the circuit: three in a row do, and one alone that will not heal by waiting, or that took a whole request
 * timeout (slow is as bad as down).
 *
 * @param consecutiveFaults - this one included
 */
export function opensCircuit(fault: Pick<Fault, 'configuration' | 'timedOut'>, consecutiveFaults: number): boolean {
  return fault.configuration || fault.timedOut || consecutiveFaults >= FAULTS_THAT_OPEN
}

/**
 * How long nothing is sent: doubles with each failure, a minute at most, the second half of it random.
 *
 * @param failures - before this one; 0 for the one that opens the circuit
 * @example
 * coolDownMs(3, { baseMs: 500, capMs: 60_000 }, random) // 2000..4000
 */
export function coolDownMs(failures: number, delays: RetryDelays, random: Pick<Random, 'next'>): number {
  const longest = Math.min(delays.capMs, UNCHARGED_CAP_MS, delays.baseMs * 2 ** failures)
  return Math.ceil(longest / 2 + (random.next() * longest) / 2)
}
