export interface Schedule {
  /** Seconds between two invocations. */
  readonly periodSeconds: number
  /** Each invocation but the first comes up to so many seconds late, at random. Default 0. */
  readonly jitterSeconds?: number | undefined
  /** Begins an invocation; it never throws, and nobody waits for it. */
  readonly invoke: () => Promise<unknown>
}

/**
 * Invokes at once and then at every period, as EventBridge Scheduler does: asynchronously, without retries, whether or not the
 * one before has ended. Answers how to stop it.
 */
export function startScheduler(schedules: readonly Schedule[], random: () => number = Math.random): () => void {
  const late = new Set<NodeJS.Timeout>()
  const timers = schedules.map(({ periodSeconds, jitterSeconds = 0, invoke }) => {
    void invoke()
    return setInterval(() => {
      if (jitterSeconds === 0) {
        void invoke()
        return
      }
      const timer = setTimeout(
        () => {
          late.delete(timer)
          void invoke()
        },
        random() * jitterSeconds * 1000,
      )
      late.add(timer)
    }, periodSeconds * 1000)
  })
  return () => {
    for (const timer of [...timers, ...late]) clearTimeout(timer)
  }
}
