import { monitorSettings } from '../../src/config/settings.js'
import { measureBacklog } from '../../src/core/measure-backlog.js'
import { createHandler } from '../handler.js'

/** Measures the backlog, independently of the relay: a relay that is dead cannot hide it. Scheduled every minute. */
export const handler = createHandler({
  name: 'monitor',
  settings: monitorSettings,
  schema: 'checked',
  async run({ store, telemetry, deadline }) {
    const backlog = await measureBacklog({ store, telemetry, deadline })
    telemetry.log('backlog-measured', { ...backlog })
    return backlog
  },
})
