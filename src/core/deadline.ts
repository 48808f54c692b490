import type { Clock } from './clock.js'

/** A moment in monotonic time beyond which nothing new is begun. */
export interface Deadline {
  /** Milliseconds left; negative once it has passed. */
  remainingMs(): number
}

/** A deadline `ms` from now. */
export function deadlineAfter(clock: Clock, ms: number): Deadline {
  const at = clock.nowMs() + ms
  return { remainingMs: () => at - clock.nowMs() }
}

/** The earlier of two deadlines. */
export function earlier(a: Deadline, b: Deadline): Deadline {
  return { remainingMs: () => Math.min(a.remainingMs(), b.remainingMs()) }
}
