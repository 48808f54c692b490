import type { Clock, Random } from '../core/clock.js'

/** The process's own clocks. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  epochMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve()
        return
      }
      const wake = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, Math.max(0, ms))
      signal?.addEventListener('abort', wake)
    }),
}

export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => crypto.randomUUID(),
}
