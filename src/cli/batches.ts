import type { Clock } from '../core/clock.js'

/** A batch locks the shards of its events until it is done: longer ones would hold up relays. */
const batchRows = 100

export interface BatchPlan {
  /** Ends after so many events; default: when there are no more. */
  readonly limit?: number | undefined
  /** Events a second; default: as fast as the database does it. */
  readonly rate?: number | undefined
  readonly clock: Clock
  /** Ends the run after the batch that is under way. */
  readonly stop: AbortSignal
  /** Told after each batch how many events there were so far. */
  readonly onBatch: (events: number) => void
}

/**
 * Carries out batches until one finds nothing, the limit is reached, or it is stopped; answers which of both.
 *
 * @param carryOut one batch of at most `maxRows` events; answers how many it changed
 * @example
 * await runBatches((maxRows) => carryOut(database, 'public', { ...act, maxRows }), { limit: 500, rate: 50, clock, stop, onBatch })
 */
export async function runBatches(
  carryOut: (maxRows: number) => Promise<number>,
  { limit = Infinity, rate = Infinity, clock, stop, onBatch }: BatchPlan,
): Promise<'done' | 'stopped'> {
  let events = 0
  while (!stop.aborted) {
    const startedMs = clock.nowMs()
    const changed = await carryOut(Math.min(batchRows, rate, limit - events))
    events += changed
    onBatch(events)
    if (changed === 0 || events >= limit) return 'done'
    const waitMs = (changed / rate) * 1000 - (clock.nowMs() - startedMs)
    if (waitMs > 0) await clock.sleep(waitMs, stop)
  }
  return 'stopped'
}
