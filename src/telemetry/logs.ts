import type { LogMessage } from '../core/ports.js'

export interface LogDefinition {
  readonly level: 'INFO' | 'WARN' | 'ERROR'
  readonly text: string
  /** For whoever reads it at 3 a.m. */
  readonly meaning: string
}

/** Every message the handlers log. Fields never carry payloads, secrets or parameter values. */
export const logCatalogue: Readonly<Record<LogMessage, LogDefinition>> = {
  'configuration-error': {
    level: 'ERROR',
    text: 'Configuration error',
    meaning:
      'the invocation ended before it did anything; the field `reason` names the variable, the value seen and the value allowed',
  },
  'schema-refused': {
    level: 'ERROR',
    text: 'The outbox schema cannot be served by this release',
    meaning:
      'tables are missing, older or newer than this release can serve, out of reach of the database user, or belong to another installation; nothing was claimed',
  },
  'database-error': {
    level: 'ERROR',
    text: 'The database could not be used',
    meaning: 'a statement failed for good or until the deadline; leases run out by themselves and the next pass goes on',
  },
  'relay-pass-completed': {
    level: 'INFO',
    text: 'Relay pass completed',
    meaning: 'one invocation ended as planned, with its totals',
  },
  'lease-lost': {
    level: 'WARN',
    text: 'Lease lost',
    meaning: 'another relay took over shards of this batch; nothing was changed for them, what was already sent may arrive twice',
  },
  'event-suspected': {
    level: 'ERROR',
    text: 'A relay ended with one event in hand',
    meaning:
      'a relay crashed, hung or was killed while it served this event alone; `crashes` counts how often so far, and after three the event is failed. `lastRelay` is the request id of the invocation to look at',
  },
  'event-fault': {
    level: 'ERROR',
    text: 'An event could not be read or encoded',
    meaning:
      'its payload cannot be read (a damaged row?), or encoding it met a fault of this program; it is put off and not charged, others go on',
  },
  'event-failed': {
    level: 'ERROR',
    text: 'Event failed',
    meaning: 'an event will not be tried again until an operator redrives or discards it; `errorCode` and `error` say why',
  },
  'event-unrouted': {
    level: 'WARN',
    text: 'Events without a configured destination wait',
    meaning: 'a route, a default or a destination is missing in the configuration; nothing is lost, they go out once it is there',
  },
  'destination-fault': {
    level: 'WARN',
    text: 'A destination failed',
    meaning:
      'a whole request failed for a reason no event causes; its events are retried and not charged. `configuration` true: waiting will not heal it',
  },
  'circuit-opened': {
    level: 'ERROR',
    text: 'The circuit of a destination is open',
    meaning:
      'three requests in a row failed, or one that waiting will not heal (`configuration` true) or that timed out; its events are put aside without charge, and one of them tries it after `coolDownMs`, for all relays. `principal` may not use `resource`, where AWS says so',
  },
  'circuit-closed': {
    level: 'INFO',
    text: 'The circuit of a destination is closed',
    meaning: 'it accepted the event that tried it, or is not configured any more; what was put aside comes back, oldest first',
  },
  'unknown-entry': {
    level: 'WARN',
    text: 'A destination did not answer for some entries',
    meaning: 'entries were named neither as accepted nor as refused; they are sent again and may arrive twice',
  },
  'destination-missing': {
    level: 'ERROR',
    text: 'A destination does not exist, or is of another account',
    meaning:
      '`resource` is what the configuration names, `accountExpected` whose it should be. Events for a missing bus wait, uncharged, since EventBridge would say yes and lose them; a missing queue or topic refuses by itself. Looked at again by each relay pass',
  },
  'destination-unchecked': {
    level: 'WARN',
    text: 'A destination could not be checked',
    meaning:
      'whether it exists, and how many bytes a queue or topic takes, could not be read; `error` says why. What was read before holds, else it is taken to exist, and `maxBytes` of the destination or the default of its service counts. Logged once until a read succeeds',
  },
  'claim-oversize': {
    level: 'WARN',
    text: 'A claim was too large for the Data API',
    meaning: 'its shards were given back and the next claim asks for half the rows',
  },
  'settle-unresolved': {
    level: 'ERROR',
    text: 'A settlement got no answer in time',
    meaning: 'whether outcomes were recorded is unknown; what was not is sent again after the lease, with the same event ids',
  },
  'cleanup-completed': { level: 'INFO', text: 'Cleanup completed', meaning: 'one invocation ended, with its totals' },
  'backlog-measured': { level: 'INFO', text: 'Backlog measured', meaning: 'what the monitor saw, by the database clock' },
  'migration-completed': { level: 'INFO', text: 'Migration completed', meaning: 'the schema is at this version' },
  'migration-failed': {
    level: 'ERROR',
    text: 'Migration failed',
    meaning: 'the deployment stops with this reason; the schema is as the last completed step left it',
  },
  'user-secret-rotated': {
    level: 'INFO',
    text: 'A step of a rotation is done',
    meaning:
      "`step` of the rotation of the secret of `role`'s database user; after `finishSecret` that function logs in as `user`",
  },
  'canary-written': { level: 'INFO', text: 'Canary written', meaning: 'a canary event for each watched bus is in the outbox' },
  'canary-received': {
    level: 'INFO',
    text: 'Canary received',
    meaning: 'a canary event came back from its bus, `ageSeconds` after the database wrote it',
  },
  'canary-ignored': {
    level: 'WARN',
    text: 'An event that is no canary of this installation was ignored',
    meaning:
      'something else sent the canary function an event of type OutboxCanary: a rule or a caller that nobody of this stack made',
  },
}
