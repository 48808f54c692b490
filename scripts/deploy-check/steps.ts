/** One thing that is shown, or not. `show` answers with the evidence, in a few words, and throws if it does not hold. */
export interface Step {
  readonly name: string
  show(): Promise<string>
  /** Without it the steps after it have no sense, and count as failed. Default `goes-on`. */
  readonly onFailure?: 'ends-the-run'
}

export interface Result {
  readonly name: string
  /** Undefined: it was shown. */
  readonly failure: string | undefined
}

/** Shows the steps in order, each with a line. */
export async function showAll(run: string, steps: readonly Step[], signal: AbortSignal): Promise<readonly Result[]> {
  const results: Result[] = []
  let obstacle: string | undefined
  for (const step of steps) {
    const name = `${run}: ${step.name}`
    const startedAt = performance.now()
    const say = (state: string, text: string) =>
      console.log(`${state.padEnd(6)} ${name} (${((performance.now() - startedAt) / 1000).toFixed(0)} s): ${text}`)
    try {
      if (obstacle !== undefined) throw new Error(`not reached, because this failed: ${obstacle}`)
      signal.throwIfAborted()
      say('ok', await step.show())
      results.push({ name, failure: undefined })
    } catch (error) {
      const failure = messageOf(error)
      say('FAILED', failure)
      results.push({ name, failure })
      if (step.onFailure === 'ends-the-run') obstacle ??= step.name
    }
  }
  return results
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Looks again and again until there is something; `what` names it in the message. */
export async function until<Found>(
  what: string,
  seconds: number,
  signal: AbortSignal,
  look: () => Promise<Found | undefined>,
): Promise<Found> {
  const giveUpAt = performance.now() + seconds * 1000
  for (;;) {
    signal.throwIfAborted()
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > giveUpAt) throw new Error(`${what}: not within ${seconds} s`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** Fails with `message` unless the condition holds. */
export function must(condition: unknown, message: string): asserts condition {
  if (condition === false || condition === undefined || condition === null || condition === 0 || condition === '')
    throw new Error(message)
}
