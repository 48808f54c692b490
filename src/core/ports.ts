import type { Backlog } from './backlog.js'
import type { Circuit, Fault } from './circuit.js'
import type { Deadline } from './deadline.js'
import type { ClaimedEvent, OutboundEvent } from './event.js'
import type { PublishAnswer } from './outcome.js'
import type { SettleAnswer, Settlement } from './settlement.js'

// ---- SQL ---------------------------------------------------------------------------------------------------------

/** What a parameter may be. Numbers must be integers; a uuid, JSON or timestamp is a string that the SQL casts. */
export type SqlParameter = string | number | bigint | boolean | null

/** int2 and int4 come as number, int8 as bigint, everything else as string, boolean or null. */
export type SqlValue = string | number | bigint | boolean | null

export type SqlRow = Readonly<Record<string, SqlValue>>

export interface SqlStatement {
  /** One statement; parameters as `:name`. */
  readonly sql: string
  readonly parameters?: Readonly<Record<string, SqlParameter>> | undefined
  /**
   * Whether running it twice does no more than running it once. If so, the executor repeats it after an ambiguous
   * failure (reply lost, timeout, 5xx) until the deadline; if not, such a failure is thrown at once.
   */
  readonly repeatable: boolean
}

export interface SqlResult {
  readonly rows: readonly SqlRow[]
  /** Rows an INSERT, UPDATE or DELETE changed; 0 for a SELECT. */
  readonly updatedRows: number
  /** The statement was sent more than once, and an earlier sending may have run. */
  readonly repeated: boolean
}

export interface SqlCallOptions {
  /** No attempt starts, and no wait is begun, beyond it. Default: the executor's own. */
  readonly deadline?: Deadline | undefined
}

/** Runs single statements, each in its own transaction. Throws `SqlError`. */
export interface SqlExecutor {
  execute(statement: SqlStatement, options?: SqlCallOptions): Promise<SqlResult>
}

/** One open transaction. Calls run one after another, never at the same time. */
export interface SqlTransaction extends SqlExecutor {
  /** Throws `SqlError` of kind `ambiguous` if it cannot be known whether the commit happened. */
  commit(options?: SqlCallOptions): Promise<void>
  /** Never throws: a transaction that is gone is rolled back too. */
  rollback(): Promise<void>
}

export interface SqlDatabase extends SqlExecutor {
  begin(options?: SqlCallOptions): Promise<SqlTransaction>
}

// ---- The outbox --------------------------------------------------------------------------------------------------

export interface ClaimRequest {
  /** UUID: new when nothing is held under it; the fence of everything that follows. */
  readonly token: string
  /** Who claims, for people who read the lease. */
  readonly owner: string
  readonly maxRows: number
  readonly maxBytes: number
  /** At most so many events of one ordering key. */
  readonly keyRows: number
  readonly maxShards: number
  readonly leaseSeconds: number
  /** Ids still in hand under this token; null with a new token. */
  readonly inFlight: readonly string[] | null
  /** Not null: the relay has nothing else in hand, so it may get one suspect alone, leased for so long. */
  readonly suspectLeaseSeconds: number | null
}

export interface ClaimAnswer {
  /** In seq order. Empty: nothing is due, or others are serving it. */
  readonly events: readonly ClaimedEvent[]
  /** Suspects wait that no relay has served for a second. */
  readonly suspectsWait: boolean
  /** The claim was sent more than once: the token may lease shards that the answer does not show, so settle it. */
  readonly repeated: boolean
  /** All circuits that are not closed, or have events aside; null if there are no events: then it was not looked. */
  readonly circuits: readonly Circuit[] | null
}

/** A fault that opens a circuit, or keeps it open. */
export interface CircuitFault {
  /** The lease token of the event: without its lease nothing is changed. */
  readonly token: string
  readonly destination: string
  /** UUID of the event that was sent: it is the next probe, unless others are aside. */
  readonly event: string
  /** As this relay knows them: if another relay was faster nothing changes. */
  readonly failures: number
  readonly coolDownMs: number
  readonly fault: Fault
}

export interface CircuitAnswer {
  /** Whether this very call changed the circuit. */
  readonly changed: boolean
  readonly circuits: readonly Circuit[]
}

/** What `outbox_meta` says. */
export interface OutboxMeta {
  readonly schemaVersion: number
  readonly minRelayVersion: string
  readonly installation: string | null
}

/** The outbox, as relay, cleanup and monitor use it. Every call is one statement, and repeatable. Throws `SqlError`. */
export interface OutboxStore {
  claim(request: ClaimRequest, options?: SqlCallOptions): Promise<ClaimAnswer>
  /** Marks a suspect as started, before it is encoded and sent alone; false: it is not leased any more. */
  start(token: string, id: string, options?: SqlCallOptions): Promise<boolean>
  settle(settlement: Settlement, options?: SqlCallOptions): Promise<SettleAnswer>
  /** Prolongs the lease of these shards, counted from now. Answers how many the token still leased. */
  renew(token: string, shards: readonly number[], leaseSeconds: number, options?: SqlCallOptions): Promise<number>
  /** The whole payload, chunk by chunk; null if the event's row is gone or changed meanwhile. */
  readPayload(id: string, options?: SqlCallOptions): Promise<string | null>
  /**
   * The circuits, after bringing back what is aside for closed ones: `wanted` events of each destination at most, and
   * `perSecond` over all relays.
   */
  circuits(wanted: Readonly<Record<string, number>>, perSecond: number, options?: SqlCallOptions): Promise<readonly Circuit[]>
  circuitFault(fault: CircuitFault, options?: SqlCallOptions): Promise<CircuitAnswer>
  /** @param probe - the one that was accepted, with its lease token; null: whatever the probe is, since the destination is configured no more */
  closeCircuit(
    destination: string,
    probe: { readonly token: string; readonly event: string } | null,
    options?: SqlCallOptions,
  ): Promise<CircuitAnswer>
  backlog(options?: SqlCallOptions): Promise<Backlog>
  /** Deletes at most `maxRows` delivered or discarded events past retention; answers how many. Repeat until 0. */
  cleanup(retentionSeconds: number, maxRows: number, options?: SqlCallOptions): Promise<number>
  /** Discards at most `maxRows` events that failed longer ago than this, with an audit row; answers how many. */
  expireFailed(retentionSeconds: number, maxRows: number, options?: SqlCallOptions): Promise<number>
  meta(options?: SqlCallOptions): Promise<OutboxMeta>
}

// ---- Destinations ------------------------------------------------------------------------------------------------

/** One event encoded for one destination. `entry` is the publisher's own. */
export interface Message<Entry = unknown> {
  readonly eventId: string
  /** What it counts against `Publisher.limits.maxBytes`. */
  readonly bytes: number
  readonly entry: Entry
}

/** A refused event can never be sent unchanged: `reason` says why and how to fix it, `code` is for filters. */
export type Preparation<Entry = unknown> =
  | { readonly ok: true; readonly message: Message<Entry>; readonly droppedHeaders: number }
  | { readonly ok: false; readonly code: string; readonly reason: string }

export interface Publisher<Entry = unknown> {
  /** Of one request: entries, and bytes of all its messages. */
  readonly limits: {
    readonly maxEntries: number
    readonly maxBytes: number
    /** Who says so, for the reason of a refusal: `its attribute MaximumMessageSize`. */
    readonly maxBytesFrom?: string | undefined
  }
  /** What it sends to, as the service names it: for the log. */
  readonly resource?: string | undefined
  /** Pure: encodes and validates. */
  prepare(event: OutboundEvent): Preparation<Entry>
  /** Sends one request and classifies its answer. Never throws for what a service or a network can answer. */
  publish(messages: readonly Message<Entry>[]): Promise<PublishAnswer>
}

// ---- Telemetry ---------------------------------------------------------------------------------------------------

/** Every metric the handlers emit; `src/telemetry` gives unit, dimensions and meaning. */
export type MetricName =
  | 'BacklogAge'
  | 'BacklogDepth'
  | 'BackingOffEvents'
  | 'HeldEvents'
  | 'ScheduledEvents'
  | 'FailedEvents'
  | 'BlockedKeys'
  | 'LeasedShards'
  | 'OpenCircuits'
  | 'MisconfiguredDestinations'
  | 'Published'
  | 'Retried'
  | 'Failed'
  | 'Unrouted'
  | 'UnknownEntries'
  | 'DroppedHeaders'
  | 'DestinationFaults'
  | 'PublishRequests'
  | 'DeliveryLatency'
  | 'LeaseLost'
  | 'CrashedRelays'
  | 'OversizeClaims'
  | 'PassCompleted'
  | 'EventsDeleted'
  | 'FailedEventsExpired'
  | 'CleanupBehind'
  | 'DestinationsMissing'
  | 'CanaryAge'
  | 'DataApiCalls'
  | 'DataApiErrors'

/** Every message the handlers log; `src/telemetry` gives level, text and meaning. */
export type LogMessage =
  | 'configuration-error'
  | 'schema-refused'
  | 'database-error'
  | 'relay-pass-completed'
  | 'lease-lost'
  | 'event-suspected'
  | 'event-fault'
  | 'event-failed'
  | 'event-unrouted'
  | 'destination-fault'
  | 'circuit-opened'
  | 'circuit-closed'
  | 'unknown-entry'
  | 'destination-missing'
  | 'destination-unchecked'
  | 'claim-oversize'
  | 'settle-unresolved'
  | 'cleanup-completed'
  | 'backlog-measured'
  | 'migration-completed'
  | 'migration-failed'
  | 'user-secret-rotated'
  | 'canary-written'
  | 'canary-received'
  | 'canary-ignored'

export type LogFields = Readonly<Record<string, string | number | boolean | null>>

/** Counts and logs. Never payloads, secrets or parameter values. */
export interface Telemetry {
  metric(name: MetricName, value: number, dimensions?: { readonly destination?: string }): void
  log(message: LogMessage, fields?: LogFields): void
  /** Writes out what was counted, so that a killed invocation loses one turn at most. */
  flush(): void
}
