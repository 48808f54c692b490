import type { Clock } from '../../src/core/clock.js'

/**
 * A clock that moves only when somebody sleeps or `advance` is called. A sleep with a signal is a guard beside something else:
 * it ends when its signal aborts, or when the others' sleeping has brought its time.
 */
export class TestClock implements Clock {
  readonly slept: number[] = []
  #now = 0
  readonly #guards = new Set<{ readonly at: number; readonly wake: () => void }>()

  nowMs(): number {
    return this.#now
  }

  epochMs(): number {
    return this.#now
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal === undefined) {
      this.slept.push(ms)
      this.advance(ms)
      return Promise.resolve()
    }
    if (signal.aborted || ms <= 0) return Promise.resolve()
    return new Promise((resolve) => {
      const guard = {
        at: this.#now + ms,
        wake: () => {
          this.#guards.delete(guard)
          resolve()
        },
      }
      this.#guards.add(guard)
      signal.addEventListener('abort', guard.wake)
    })
  }

  advance(ms: number): void {
    this.#now += ms
    for (const guard of this.#guards) if (guard.at <= this.#now) guard.wake()
  }
}
