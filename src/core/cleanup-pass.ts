import type { Deadline } from './deadline.js'
import type { OutboxStore, Telemetry } from './ports.js'

export interface CleanupPassOptions {
  readonly store: Pick<OutboxStore, 'cleanup' | 'expireFailed'>
  /** Delivered and discarded events older than this are deleted. */
  readonly retentionSeconds: number
  /** Events that failed longer ago than this are discarded first; null: never. */
  readonly failedRetentionSeconds: number | null
  /** Of one transaction. */
  readonly maxRows: number
  readonly telemetry: Telemetry
  /** No transaction begins beyond it. */
  readonly deadline: Deadline
  /** A transaction that has begun may take so long. */
  readonly hardDeadline: Deadline
}

export interface CleanupTotals {
  readonly deleted: number
  readonly expired: number
  /** The time was over before everything past retention was gone. */
  readonly behind: boolean
}

/**
 * Deletes what is past retention, in transactions of at most `maxRows` events, until nothing is left or the deadline is
 * reached. Undelivered events are never touched. Running it twice at once is harmless: each takes rows the other has not.
 *
 * @throws SqlError if the database cannot be used; what was deleted stays deleted.
 * @example
 * await cleanupPass({ store, retentionSeconds: 604_800, failedRetentionSeconds: null, maxRows: 1000, telemetry, deadline })
 */
export async function cleanupPass(options: CleanupPassOptions): Promise<CleanupTotals> {
  const { store, retentionSeconds, failedRetentionSeconds, maxRows, telemetry, deadline, hardDeadline } = options
  const untilNone = async (step: () => Promise<number>): Promise<{ rows: number; finished: boolean }> => {
    let rows = 0
    while (deadline.remainingMs() > 0) {
      const changed = await step()
      rows += changed
      if (changed === 0) return { rows, finished: true }
    }
    return { rows, finished: false }
  }

  const expired =
    failedRetentionSeconds === null
      ? { rows: 0, finished: true }
      : await untilNone(() => store.expireFailed(failedRetentionSeconds, maxRows, { deadline: hardDeadline }))
  const deleted = await untilNone(() => store.cleanup(retentionSeconds, maxRows, { deadline: hardDeadline }))
  const behind = !expired.finished || !deleted.finished
  telemetry.metric('FailedEventsExpired', expired.rows)
  telemetry.metric('EventsDeleted', deleted.rows)
  telemetry.metric('CleanupBehind', behind ? 1 : 0)
  return { deleted: deleted.rows, expired: expired.rows, behind }
}
