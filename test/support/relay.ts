import { randomUUID } from 'node:crypto'
import type { Clock } from '../../src/core/clock.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import type { RelayPassSettings, RelayPassTotals } from '../../src/core/pass-context.js'
import type { OutboxStore, Publisher } from '../../src/core/ports.js'
import { relayPass } from '../../src/core/relay-pass.js'
import { compileRoutes, type Route } from '../../src/core/route.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase } from '../../src/data-api/database.js'
import { systemClock, systemRandom } from '../../src/data-api/system-clock.js'
import { createOutboxStore } from '../../src/store/postgres/outbox-store.js'
import { schemaSql } from '../../src/store/postgres/schema-sql.js'
import { startTestDataApi, type TestDataApi } from './data-api.js'
import { RecordingTelemetry } from './recording-telemetry.js'

export interface RelayRig {
  readonly api: TestDataApi
  readonly store: OutboxStore
  pass(options: PassOptions): Promise<{ readonly totals: RelayPassTotals; readonly telemetry: RecordingTelemetry }>
  /** Passes until nothing is due, waiting or leased any more (at most `passes`). */
  drain(options: PassOptions, passes?: number): Promise<void>
  /** Inserts events in one transaction; `sql` is a SELECT of (event_type, payload, ordering_key, destination). */
  write(values: string): Promise<void>
  status(where?: string): Promise<StatusRow[]>
  /** Removes all events and leases. */
  reset(): Promise<void>
}

export interface StatusRow {
  readonly id: string
  readonly event_type: string
  readonly status: string
  readonly detail: string | null
  readonly attempts: number
  readonly ordering_key: string | null
  readonly destination: string | null
  readonly last_error_code: string | null
  readonly last_error: string | null
}

export interface PassOptions {
  readonly publishers: Readonly<Record<string, Publisher>>
  readonly routes?: readonly Route[]
  readonly defaultDestination?: string | null
  readonly settings?: Partial<RelayPassSettings>
  /** Milliseconds. Default 10,000; a pass of profile `drain`, the default, ends earlier. */
  readonly passMs?: number
  readonly telemetry?: RecordingTelemetry
  readonly store?: OutboxStore
  readonly clock?: Clock
}

/** The relay pass on a real database behind the Data API, with destinations that the test scripts. */
export async function relayRig(options: Parameters<typeof startTestDataApi>[0] = {}): Promise<RelayRig> {
  const api = await startTestDataApi(options)
  await api.db.query(schemaSql({ schema: 'public' }))
  const { resourceArn, secretArn, database: name, clientConfig } = api
  const database = createDataApiDatabase({ client: createRdsDataClient(clientConfig), resourceArn, secretArn, database: name })
  const store = createOutboxStore(database, { schema: 'public' })

  const pass: RelayRig['pass'] = async (given) => {
    const telemetry = given.telemetry ?? new RecordingTelemetry()
    const clock = given.clock ?? systemClock
    const destinations = Object.fromEntries(
      Object.keys(given.publishers).map((destination) => [destination, { type: 'sqs', queueUrl: 'http://none' } as const]),
    )
    const defaultDestination =
      given.defaultDestination === undefined ? (Object.keys(given.publishers)[0] ?? null) : given.defaultDestination
    const totals = await relayPass({
      store: given.store ?? store,
      route: compileRoutes({ destinations, routes: given.routes ?? [], defaultDestination }),
      publishers: new Map(Object.entries(given.publishers)),
      settings: { ...quickSettings, ...given.settings },
      clock,
      random: systemRandom,
      telemetry,
      owner: randomUUID(),
      deadline: deadlineAfter(clock, given.passMs ?? 10_000),
      hardDeadline: deadlineAfter(clock, (given.passMs ?? 10_000) + 10_000),
    })
    return { totals, telemetry }
  }

  return {
    api,
    store,
    pass,
    drain: async (given, passes = 200) => {
      for (let n = 0; n < passes; n++) {
        await pass(given)
        const [row] = await api.db.query<{ left: number }>('SELECT count(*)::int AS "left" FROM outbox_delivery WHERE lane < 3')
        if (row?.left === 0) return
        await systemClock.sleep(20)
      }
      throw new Error(`after ${passes} passes there are still events to deliver`)
    },
    write: async (values) => {
      await api.db.query(`INSERT INTO outbox (event_type, payload, ordering_key, destination) ${values}`)
    },
    status: (where = 'true') =>
      api.db.query<StatusRow>(
        `SELECT id, event_type, status, detail, attempts, ordering_key, destination, last_error_code, last_error
           FROM outbox_status WHERE ${where} ORDER BY created_at, id`,
      ),
    reset: async () => {
      api.clearFaults()
      await api.db.query('TRUNCATE outbox, outbox_delivery, outbox_receipt, outbox_circuit')
      await api.db.query(
        `UPDATE outbox_shard SET lease_token = NULL, lease_owner = NULL, lease_until = '-infinity', settled_token = NULL,
           reclaimed_from = NULL, handed = '{}'`,
      )
    },
  }
}

/** Retries come at once, so that tests wait for nothing. */
const quickSettings: RelayPassSettings = {
  profile: 'drain',
  leaseSeconds: 30,
  claimRows: 500,
  claimBytes: 700_000,
  keyRows: 50,
  maxShards: 8,
  requestTimeoutMs: 1000,
  requestsInFlight: 4,
  releasePerSecond: 100_000,
  idleWaitMs: 50,
  policy: { maxAttempts: 10, baseMs: 10, capMs: 50 },
}
