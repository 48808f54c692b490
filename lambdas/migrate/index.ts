import { migrateSettings } from '../../src/config/settings.js'
import { deadlineAfter, earlier } from '../../src/core/deadline.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { migrate } from '../../src/store/migrator.js'
import { createHandler } from '../handler.js'

/** Brings the schema to this release. Runs at deploy; repeats are harmless. */
export const handler = createHandler({
  name: 'migrate',
  settings: migrateSettings,
  schema: 'made',
  async run({ settings, database, telemetry, deadline }) {
    const { schema, installation, migrateSeconds } = settings
    const budget = deadlineAfter(systemClock, migrateSeconds * 1000)
    const report = await migrate(database, { schema, installation, clock: systemClock, deadline: earlier(budget, deadline) })
    telemetry.log('migration-completed', {
      schema: report.schema,
      schemaVersion: report.schemaVersion,
      applied: report.applied.join(', '),
      installation: report.installation,
    })
    return report
  },
})
