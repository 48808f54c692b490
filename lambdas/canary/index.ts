import { canarySettings } from '../../src/config/settings.js'
import { canary } from '../../src/core/canary.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { insertEventsStatement } from '../../src/store/postgres/insert-events.js'
import { createEventIds } from '../../src/writer/event-id.js'
import { createHandler } from '../handler.js'

const nextEventId = createEventIds()

/**
 * Writes canary events at its schedule, as a service would, and measures those that a rule of the bus brings back to it.
 *
 * Its user may insert and no more, so it does not look at the schema first: one that is missing refuses by itself.
 */
export const handler = createHandler({
  name: 'canary',
  settings: canarySettings,
  schema: 'unread',
  run({ settings, database, telemetry, event, deadline }) {
    const { installation, destinations, schema } = settings
    return canary({
      event,
      installation,
      destinations,
      async write(events) {
        const rows = events.map((one) => ({ ...one, id: nextEventId() }))
        await database.execute(insertEventsStatement(rows, schema), { deadline })
      },
      clock: systemClock,
      telemetry,
    })
  },
})
