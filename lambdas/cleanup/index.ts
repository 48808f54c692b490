import { cleanupSettings } from '../../src/config/settings.js'
import { cleanupPass } from '../../src/core/cleanup-pass.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { createHandler } from '../handler.js'

/** Kept for the last transaction, so that running out of time is an outcome and not an error. */
const LAST_MS = 10_000

/** Deletes what is past retention. Scheduled hourly; running it twice at once is harmless. */
export const handler = createHandler({
  name: 'cleanup',
  settings: cleanupSettings,
  schema: 'checked',
  async run({ settings, store, telemetry, deadline: hardDeadline }) {
    const { retentionSeconds, failedRetentionSeconds, cleanupRows: maxRows } = settings
    const deadline = deadlineAfter(systemClock, hardDeadline.remainingMs() - LAST_MS)
    const totals = await cleanupPass({
      store,
      retentionSeconds,
      failedRetentionSeconds,
      maxRows,
      telemetry,
      deadline,
      hardDeadline,
    })
    telemetry.log('cleanup-completed', { ...totals })
    return totals
  },
})
