/** The right to do something that only so many should do at a time; whoever waits gets it in the order of asking. */
export class Turn {
  #free: number
  readonly #waiting: (() => void)[] = []

  /** @param places - how many may have it at the same time; default 1 */
  constructor(places = 1) {
    this.#free = places
  }

  async take(): Promise<void> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#free -= 1
  }

  /** Passes the turn on. Only who has it may call this. */
  pass(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}
