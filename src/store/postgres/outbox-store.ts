import type { Backlog } from '../../core/backlog.js'
import type { Circuit } from '../../core/circuit.js'
import type { ClaimedEvent } from '../../core/event.js'
import type { OutboxStore, SqlCallOptions, SqlExecutor, SqlParameter, SqlRow } from '../../core/ports.js'
import { storableText } from '../../core/retry-policy.js'
import type { SettleAnswer } from '../../core/settlement.js'
import { readMeta } from './meta.js'
import { readPayload } from './read-payload.js'
import { bigint, boolean, integer, integerOrNull, single, text, textOrNull } from './row.js'
import { encodeSettlement } from './settlement.js'
import { quotedSchema } from './sql-name.js'

/**
 * The outbox in PostgreSQL. Each call is one statement, and one transaction of its own; all of them may be repeated, because
 * the lease token, or the queue itself, makes a repeat change nothing that the first run did not.
 *
 * @example
 * const store = createOutboxStore(database, { schema: 'public' })
 */
export function createOutboxStore(executor: SqlExecutor, { schema }: { readonly schema: string }): OutboxStore {
  const outbox = quotedSchema(schema)
  const call = (sql: string, parameters: Readonly<Record<string, SqlParameter>>, options?: SqlCallOptions) =>
    executor.execute({ sql, parameters, repeatable: true }, options)

  return {
    async claim(request, options) {
      const { rows, repeated } = await call(
        `SELECT * FROM ${outbox}.outbox_claim(CAST(:token AS uuid), :owner, CAST(:max_rows AS integer), CAST(:max_bytes AS integer),
           CAST(:key_rows AS integer), CAST(:max_shards AS integer), CAST(:lease_seconds AS integer), :in_flight,
           CAST(:suspect_lease_seconds AS integer))`,
        {
          token: request.token,
          owner: request.owner,
          max_rows: request.maxRows,
          max_bytes: request.maxBytes,
          key_rows: request.keyRows,
          max_shards: request.maxShards,
          lease_seconds: request.leaseSeconds,
          in_flight: request.inFlight === null ? null : JSON.stringify(request.inFlight),
          suspect_lease_seconds: request.suspectLeaseSeconds,
        },
        options,
      )
      const suspectsWait = rows[0] !== undefined && boolean(rows[0], 'suspects_wait')
      return { events: rows.map(claimedEvent), suspectsWait, repeated, circuits: rows.length === 0 ? null : circuitsOf(rows) }
    },

    async start(token, id, options) {
      const sql = `SELECT ${outbox}.outbox_start(CAST(:token AS uuid), CAST(:id AS uuid)) AS leased`
      const { rows } = await call(sql, { token, id }, options)
      return boolean(single(rows), 'leased')
    },

    async settle(settlement, options) {
      const { rows } = await call(
        `SELECT * FROM ${outbox}.outbox_settle(CAST(:token AS uuid), :published, :changes, :done)`,
        encodeSettlement(settlement),
        options,
      )
      return settleAnswer(single(rows))
    },

    async renew(token, shards, leaseSeconds, options) {
      const { rows } = await call(
        `SELECT ${outbox}.outbox_renew(CAST(:token AS uuid), :shards, CAST(:lease_seconds AS integer)) AS shards`,
        { token, shards: JSON.stringify(shards), lease_seconds: leaseSeconds },
        options,
      )
      return integer(single(rows), 'shards')
    },

    readPayload: (id, options) => readPayload(executor, schema, id, options),

    async circuits(wanted, perSecond, options) {
      const { rows } = await call(
        `SELECT ${outbox}.outbox_circuits(:wanted, CAST(:per_second AS integer)) AS circuits`,
        { wanted: JSON.stringify(wanted), per_second: perSecond },
        options,
      )
      return circuitsOf(rows)
    },

    async circuitFault({ token, destination, event, failures, coolDownMs, fault }, options) {
      const { rows } = await call(
        `SELECT * FROM ${outbox}.outbox_circuit_fault(CAST(:token AS uuid), :destination, CAST(:event AS uuid), CAST(:failures AS integer),
           CAST(:cool_down_ms AS bigint), :configuration, :error_code, :error)`,
        {
          token,
          destination,
          event,
          failures,
          cool_down_ms: coolDownMs,
          configuration: fault.configuration,
          error_code: storableText(fault.code),
          error: storableText(fault.reason),
        },
        options,
      )
      return { changed: boolean(single(rows), 'changed'), circuits: circuitsOf(rows) }
    },

    async closeCircuit(destination, probe, options) {
      const { rows } = await call(
        `SELECT * FROM ${outbox}.outbox_circuit_close(CAST(:token AS uuid), :destination, CAST(:event AS uuid))`,
        { token: probe?.token ?? null, destination, event: probe?.event ?? null },
        options,
      )
      return { changed: boolean(single(rows), 'changed'), circuits: circuitsOf(rows) }
    },

    async backlog(options) {
      const { rows } = await call(`SELECT * FROM ${outbox}.outbox_backlog()`, {}, options)
      return backlog(single(rows))
    },

    async cleanup(retentionSeconds, maxRows, options) {
      const { rows } = await call(
        `SELECT ${outbox}.outbox_cleanup(CAST(:retention_seconds AS bigint), CAST(:max_rows AS integer)) AS events`,
        { retention_seconds: retentionSeconds, max_rows: maxRows },
        options,
      )
      return integer(single(rows), 'events')
    },

    async expireFailed(retentionSeconds, maxRows, options) {
      const { rows } = await call(
        `SELECT ${outbox}.outbox_expire_failed(CAST(:retention_seconds AS bigint), CAST(:max_rows AS integer)) AS events`,
        { retention_seconds: retentionSeconds, max_rows: maxRows },
        options,
      )
      return integer(single(rows), 'events')
    },

    meta: (options) => readMeta(executor, schema, options),
  }
}

function claimedEvent(row: SqlRow): ClaimedEvent {
  return {
    id: text(row, 'id'),
    shard: integer(row, 'shard'),
    seq: bigint(row, 'seq'),
    eventType: textOrNull(row, 'event_type'),
    eventVersion: integerOrNull(row, 'event_version') ?? 1, // null: the event's row was deleted by hand
    aggregateType: textOrNull(row, 'aggregate_type'),
    aggregateId: textOrNull(row, 'aggregate_id'),
    orderingKey: textOrNull(row, 'ordering_key'),
    destination: textOrNull(row, 'destination'),
    headers: textOrNull(row, 'headers'),
    attempts: integer(row, 'attempts'),
    starts: integer(row, 'starts'),
    replays: integer(row, 'replays'),
    reclaimedFrom: textOrNull(row, 'reclaimed_from'),
    released: boolean(row, 'released'),
    createdAtMs: integerOrNull(row, 'created_at_ms') ?? 0,
    dueAtMs: integer(row, 'due_at_ms'),
    payloadBytes: integer(row, 'payload_bytes'),
    payload: textOrNull(row, 'payload'),
  }
}

/** The circuits come as JSON in one of the rows. */
function circuitsOf(rows: readonly SqlRow[]): readonly Circuit[] {
  const json = rows.map((row) => textOrNull(row, 'circuits')).find((circuits) => circuits !== null)
  return json === undefined ? [] : (JSON.parse(json) as readonly Circuit[])
}

function settleAnswer(row: SqlRow): SettleAnswer {
  return {
    published: integer(row, 'published'),
    retried: integer(row, 'retried'),
    held: integer(row, 'held'),
    failed: integer(row, 'failed'),
    freed: integer(row, 'freed'),
    givenBack: integer(row, 'given_back'),
    kept: integer(row, 'kept'),
    settledBefore: integer(row, 'settled_before'),
  }
}

function backlog(row: SqlRow): Backlog {
  return {
    ageSeconds: seconds(integerOrNull(row, 'oldest_due_ms')),
    depth: integer(row, 'due'),
    scheduled: integer(row, 'scheduled'),
    backingOff: integer(row, 'backing_off'),
    held: integer(row, 'held'),
    failed: integer(row, 'failed'),
    blockedKeys: integer(row, 'blocked_keys'),
    oldestFailedSeconds: seconds(integerOrNull(row, 'oldest_failed_ms')),
    leasedShards: integer(row, 'leased_shards'),
    openCircuits: integer(row, 'open_circuits'),
    misconfiguredDestinations: integer(row, 'misconfigured_destinations'),
  }
}

/** An age is 0 only if there is nothing: what became due within this millisecond is 1 ms old. */
function seconds(ageMs: number | null): number {
  return ageMs === null ? 0 : Math.max(ageMs, 1) / 1_000
}
