import type { Backlog } from './backlog.js'
import type { Deadline } from './deadline.js'
import type { OutboxStore, Telemetry } from './ports.js'

/**
 * Measures the backlog and emits it, an age of 0 included: an absent value means that nobody measures.
 *
 * @throws SqlError if the database cannot be used; then nothing is emitted, and the alarm treats that as breaching.
 * @example
 * await measureBacklog({ store, telemetry, deadline })
 */
export async function measureBacklog(options: {
  readonly store: Pick<OutboxStore, 'backlog'>
  readonly telemetry: Telemetry
  readonly deadline: Deadline
}): Promise<Backlog> {
  const { store, telemetry, deadline } = options
  const backlog = await store.backlog({ deadline })
  telemetry.metric('BacklogAge', backlog.ageSeconds)
  telemetry.metric('BacklogDepth', backlog.depth)
  telemetry.metric('BackingOffEvents', backlog.backingOff)
  telemetry.metric('HeldEvents', backlog.held)
  telemetry.metric('ScheduledEvents', backlog.scheduled)
  telemetry.metric('FailedEvents', backlog.failed)
  telemetry.metric('BlockedKeys', backlog.blockedKeys)
  telemetry.metric('LeasedShards', backlog.leasedShards)
  telemetry.metric('OpenCircuits', backlog.openCircuits)
  telemetry.metric('MisconfiguredDestinations', backlog.misconfiguredDestinations)
  return backlog
}
