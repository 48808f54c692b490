import { DeleteMessageBatchCommand, SQSClient, type Message } from '@aws-sdk/client-sqs'
import pg from 'pg'
import { startLocalStack } from '../../src/local/stack.js'
import { received, sdkOptions } from './local-services.js'
import { eventually } from './outbox-sql.js'
import { PAYLOAD_DESTINATIONS, type PayloadDestination } from './payload-destinations.js'

export interface SizedEvents {
  readonly type: string
  readonly payload: string
  readonly count: number
  readonly headers?: string
  readonly orderingKey?: string
}

export interface EventState {
  readonly type: string
  readonly destination: string
  readonly status: string
  readonly code: string | null
  readonly error: string | null
}

/** A local stack whose relay runs when the test says so, once, until nothing is due. */
export interface PayloadStack {
  /** In one transaction: all of `events`, in turn, to each of the destinations in turn. */
  write(events: readonly SizedEvents[], destinations?: readonly PayloadDestination[]): Promise<void>
  /** Invokes the relay until no event is pending: one that a busy machine answers slowly is put back for a few seconds. */
  relay(): Promise<Relayed>
  /** Everything that waits in the destination's queue, taken out of it. */
  take(destination: PayloadDestination): Promise<readonly Message[]>
  states(): Promise<readonly EventState[]>
  /** Forgets all events, and what a test that failed left in the queues. */
  clear(): Promise<void>
  stop(): Promise<void>
}

export interface Relayed {
  /** What invocations failed with. */
  readonly errors: readonly string[]
  /** Claims whose answer was larger than the Data API returns. */
  readonly oversizeClaims: number
}

const RELAY_TIMEOUT_MS = 90_000

export async function startPayloadStack(): Promise<PayloadStack> {
  const stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
  const { endpoint, queues, databaseUrl } = stack.description
  const sqs = new SQSClient(sdkOptions(endpoint))
  const db = new pg.Client({ connectionString: databaseUrl })
  await db.connect()

  const take = async ({ readFrom }: PayloadDestination) => {
    const taken: Message[] = []
    const QueueUrl = queues[readFrom]!
    for (;;) {
      const messages = await received(sqs, QueueUrl)
      if (messages.length === 0) return taken
      taken.push(...messages)
      const Entries = messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
      await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
    }
  }

  return {
    async write(events, destinations = PAYLOAD_DESTINATIONS) {
      await db.query('BEGIN')
      for (const { type, payload, count, headers = null, orderingKey = null } of events) {
        await db.query(
          `INSERT INTO outbox (event_type, payload, headers, ordering_key, destination)
           SELECT $1, $2, $3, $4 || i, ($5::text[])[1 + i % cardinality($5::text[])] FROM generate_series(0, $6 - 1) i`,
          [type, payload, headers, orderingKey, destinations.map(({ name }) => name), count],
        )
      }
      await db.query('COMMIT')
    },
    async relay() {
      const errors: string[] = []
      let oversizeClaims = 0
      await eventually(async () => {
        const { error, logs } = await stack.invoke('relay')
        if (error !== null) errors.push(error.message)
        oversizeClaims += logs.filter((line) => line.includes('"OversizeClaims"')).length
        const { rows } = await db.query('SELECT FROM outbox_delivery WHERE failed_at IS NULL LIMIT 1')
        return rows.length === 0
      }, RELAY_TIMEOUT_MS)
      return { errors, oversizeClaims }
    },
    take,
    async states() {
      const { rows } = await db.query<EventState>(
        'SELECT event_type AS type, destination, status, last_error_code AS code, last_error AS error FROM outbox_status',
      )
      return rows
    },
    async clear() {
      await db.query('TRUNCATE outbox, outbox_delivery, outbox_receipt')
      for (const destination of PAYLOAD_DESTINATIONS) await take(destination)
    },
    async stop() {
      sqs.destroy()
      await db.end()
      await stack.stop()
    },
  }
}
