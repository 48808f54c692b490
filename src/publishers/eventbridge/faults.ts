import type { EventFaults } from '../classify.js'

/** What EventBridge says of an entry (user guide, "Handling failures with PutEvents"), or of a request for what is in it. */
export const EVENTBRIDGE_EVENT_FAULTS: EventFaults = {
  codes: new Set(['InvalidArgument', 'MalformedDetail', 'EntityTooLarge', 'RequestEntityTooLarge', 'Validation']),
  // bus and source are settings
  installationFields: /event ?bus|endpoint|\bsource\b/i,
}
