export interface Schedule {
  /** Seconds between two invocations. */
  readonly periodSeconds: number
  /** Begins an invocation; it never throws, and nobody waits for it. */
  readonly invoke: () => Promise<unknown>
}

/**
 * Invokes at once and then at every period, as EventBridge Scheduler does: asynchronously, without retries, whether or not the
 * one before has ended. Answers how to stop it.
 */
export function startScheduler(schedules: readonly Schedule[]): () => void {
  const timers = schedules.map(({ periodSeconds, invoke }) => {
    void invoke()
    return setInterval(() => void invoke(), periodSeconds * 1000)
  })
  return () => timers.forEach((timer) => clearInterval(timer))
}
