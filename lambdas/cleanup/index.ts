import { cleanupSettings } from '../../src/config/settings.js'
import { cleanupPass } from '../../src/core/cleanup-pass.js'
import { createHandler } from '../handler.js'

/** Deletes what is past retention. Scheduled hourly; running it twice at once is harmless. */
export const handler = createHandler({
  name: 'cleanup',
  settings: cleanupSettings,
  schema: 'checked',
  async run({ settings, store, telemetry, deadline }) {
    const { retentionSeconds, failedRetentionSeconds, cleanupRows: maxRows } = settings
    const totals = await cleanupPass({ store, retentionSeconds, failedRetentionSeconds, maxRows, telemetry, deadline })
    telemetry.log('cleanup-completed', { ...totals })
    return totals
  },
})
