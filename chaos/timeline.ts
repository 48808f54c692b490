import { setTimeout as pause } from 'node:timers/promises'

export interface Moment {
  readonly atMs: number
  /** What takes longer than an instant goes on beside what comes after it. */
  readonly act: () => unknown
}

/**
 * Lets things happen at their times, counted from now, and ends when all are done.
 *
 * @throws what an act threw, once all are done.
 */
export async function runTimeline(moments: readonly Moment[], signal: AbortSignal): Promise<void> {
  const beganAt = performance.now()
  const acting: Promise<unknown>[] = []
  for (const { atMs, act } of [...moments].sort((a, b) => a.atMs - b.atMs)) {
    await pause(Math.max(0, beganAt + atMs - performance.now()), undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
    acting.push(Promise.resolve(act()))
  }
  const failed = (await Promise.allSettled(acting)).find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
