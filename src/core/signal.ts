import type { Clock } from './clock.js'

/**
 * A wake-up call: whoever waits goes on when it is raised, or when the time is over, in which timers and sockets had their turn, even
 * if it is none: who asks again and again must not stop the whole process. A raise nobody waits for is kept.
 */
export class Signal {
  #raised = false
  #waiting: AbortController | undefined

  constructor(private readonly clock: Clock) {}

  raise(): void {
    this.#raised = true
    this.#waiting?.abort()
  }

  async wait(ms: number): Promise<void> {
    if (!this.#raised) {
      this.#waiting = new AbortController()
      await this.clock.sleep(Math.max(0, ms), this.#waiting.signal)
      this.#waiting = undefined
    }
    this.#raised = false
  }
}
