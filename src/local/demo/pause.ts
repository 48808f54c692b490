import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after `ms`, or as soon as the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

/** Resolves at a moment of `performance.now()`. */
export function pauseUntil(momentMs: number, signal: AbortSignal): Promise<void> {
  return pause(momentMs - performance.now(), signal)
}
