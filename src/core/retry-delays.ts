import type { Random } from './clock.js'

/** No event that is not to blame waits longer: an outage that is over must show within a minute. */
export const UNCHARGED_CAP_MS = 60_000

/** Milliseconds. */
export interface RetryDelays {
  /** The first retry comes within this time; it doubles with each attempt. */
  readonly baseMs: number
  /** No retry waits longer. */
  readonly capMs: number
}

/**
 * Exponential back-off with full jitter: anywhere in 1 .. min(capMs, baseMs * 2^(attempt - 1)) milliseconds.
 *
 * @param attempt - 1 for the first retry
 *
 * @example
 * retryDelayMs(3, { baseMs: 500, capMs: 60_000 }, random) // 1..2000
 */
export function retryDelayMs(attempt: number, delays: RetryDelays, random: Pick<Random, 'next'>): number {
  const window = Math.min(delays.capMs, delays.baseMs * 2 ** (Math.max(1, attempt) - 1))
  return Math.floor(random.next() * window) + 1
}
