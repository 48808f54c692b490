import type { MetricName } from '../core/ports.js'

/** CloudWatch namespace of every metric. The dimension `service` is the installation's name. */
export const metricNamespace = 'OutboxRelay'

export type MetricUnit = 'Count' | 'Seconds' | 'Milliseconds'

export interface MetricDefinition {
  readonly unit: MetricUnit
  /** Which handler emits it. */
  readonly emittedBy: 'relay' | 'cleanup' | 'monitor' | 'canary' | 'all'
  /** Also split by destination. */
  readonly byDestination: boolean
  readonly meaning: string
}

const count = (emittedBy: MetricDefinition['emittedBy'], meaning: string, byDestination = false): MetricDefinition => ({
  unit: 'Count',
  emittedBy,
  byDestination,
  meaning,
})

/** Every metric there is. The handlers emit no other; alarms, dashboard and documents read this. */
export const metricCatalogue: Readonly<Record<MetricName, MetricDefinition>> = {
  BacklogAge: {
    unit: 'Seconds',
    emittedBy: 'monitor',
    byDestination: false,
    meaning: 'age of the oldest event that is due and neither delivered nor failed; 0 when there is none',
  },
  BacklogDepth: count('monitor', 'events that are due and neither delivered nor failed'),
  BackingOffEvents: count('monitor', 'events that wait for their next attempt'),
  HeldEvents: count('monitor', 'events that wait behind an earlier event of their ordering key, or for their destination'),
  ScheduledEvents: count('monitor', 'events that are not due yet'),
  FailedEvents: count('monitor', 'events that failed and wait for an operator'),
  BlockedKeys: count(
    'monitor',
    'ordering keys that wait for an earlier event of theirs: one that backs off, or failed and blocks',
  ),
  LeasedShards: count('monitor', 'shards, of 16, that a relay holds at this moment'),
  OpenCircuits: count(
    'monitor',
    'destinations that are down: their circuit is open, and their events are put aside without charge',
  ),
  MisconfiguredDestinations: count(
    'monitor',
    'destinations whose circuit a fault of the configuration keeps open: rights, a key, a missing queue or topic. Waiting will not heal it',
  ),
  Published: count('relay', 'events that a destination confirmed and whose receipt is written', true),
  Retried: count('relay', 'events sent back to wait for another attempt', true),
  Failed: count('relay', 'events that failed for good', true),
  Unrouted: count('relay', 'events that no route leads to a configured destination; they wait'),
  UnknownEntries: count('relay', 'entries of a request that its answer named neither as accepted nor as refused', true),
  DroppedHeaders: count(
    'relay',
    'headers dropped: their reduced name is empty or clashes with another attribute, or their value is no string',
    true,
  ),
  DestinationFaults: count('relay', 'requests that failed whole: throttled, 5xx, network, timeout, rights, missing', true),
  PublishRequests: count('relay', 'publish requests sent', true),
  DeliveryLatency: {
    unit: 'Milliseconds',
    emittedBy: 'relay',
    byDestination: true,
    meaning: 'from the moment an event was due to the confirmation of its destination, by the two clocks of database and relay',
  },
  LeaseLost: count('relay', 'shards whose lease another relay had taken over before this one settled'),
  CrashedRelays: count(
    'relay',
    'relays that ended with one event alone in hand, counted once that event is settled; the third one fails it',
  ),
  OversizeClaims: count('relay', 'claims whose answer was too large for the Data API; repeated with half the rows'),
  PassCompleted: count('relay', 'relay passes that ended as planned'),
  DestinationsMissing: count(
    'relay',
    'destinations that do not exist, or belong to an account that is neither configured nor the own; 0 when there is none',
  ),
  EventsDeleted: count('cleanup', 'delivered and discarded events deleted past retention'),
  FailedEventsExpired: count('cleanup', 'failed events discarded past their retention'),
  CleanupBehind: count('cleanup', '1 when the time was over before everything past retention was deleted, else 0'),
  CanaryAge: {
    unit: 'Seconds',
    emittedBy: 'canary',
    byDestination: true,
    meaning: 'from the moment the database wrote a canary event to its return from the bus, by the clocks of database and canary',
  },
  DataApiCalls: count('all', 'calls of the Data API sent, repeats included'),
  DataApiErrors: count(
    'all',
    'calls of the Data API that failed; not counted: a cluster that resumes, an answer that was too large',
  ),
}
