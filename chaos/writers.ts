import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { SqlError } from '../src/core/errors.js'
import type { DataApiDatabase } from '../src/data-api/database.js'
import { createOutbox, type NewEvent } from '../src/writer/index.js'
import { payloadOf, type Operation, type PlannedEvent } from './operations.js'

/** What the writers were told, which the database must bear out. */
export interface Told {
  readonly committed: Set<string>
  readonly rolledBack: Set<string>
  /** Transactions that failed, or whose outcome the writer never heard. */
  failed: number
  /** Operations done, of however many there are. */
  done: number
}

export interface WritersOptions {
  readonly database: DataApiDatabase
  readonly databaseUrl: string
  readonly operations: readonly (readonly Operation[])[]
  readonly told: Told
  readonly stop: AbortSignal
  /** Of transactions that failed, so that a broken promise can be traced. */
  readonly note: (line: string) => void
}

class RolledBack extends Error {}

/** Writes what is planned, each operation at its time, or as soon as the one before lets it. Ends with the last. */
export async function runWriters({ database, databaseUrl, operations, told, stop, note }: WritersOptions): Promise<void> {
  const beganAt = performance.now()
  await Promise.all(
    operations.map(async (own, writer) => {
      const sql = new SqlWriter(databaseUrl, told, note)
      const library = libraryWriter(database, told, note)
      for (const operation of own) {
        await pause(Math.max(0, beganAt + operation.atMs - performance.now()), undefined, { signal: stop }).catch(() => undefined)
        if (stop.aborted) break
        const write = operation.by === 'sql' ? () => sql.write(operation, writer) : () => library(operation, writer)
        const written = await write()
        if (written === 'failed' && operation.idempotent) await write()
        told.done += 1
      }
      await sql.end()
    }),
  )
}

type Written = 'told' | 'failed'

/** By the writer of the package, through the Data API. */
function libraryWriter(database: DataApiDatabase, told: Told, note: WritersOptions['note']) {
  const outbox = createOutbox({ database, onWarning: () => undefined })
  return async (operation: Operation, writer: number): Promise<Written> => {
    const { events, end, holdMs, idempotent } = operation
    const wanted = events.map((event, place): NewEvent => ({
      eventType: event.eventType,
      payload: payloadOf(event, writer, operation.number),
      ...(event.key === null ? {} : { orderingKey: event.key }),
      ...(event.destination === null ? {} : { destination: event.destination }),
      ...(event.availableInMs === null ? {} : { availableAt: new Date(Date.now() + event.availableInMs) }),
      ...(idempotent ? { idempotencyKey: `${writer}/${operation.number}/${place}` } : {}),
    }))
    let ids: readonly string[] = []
    // of attempts that the library gave up and began again
    const earlier: string[] = []
    try {
      await outbox.transaction(async (tx) => {
        earlier.push(...ids)
        if (ids.length > 0) note(`writer: begins again: ${ids.join(' ')}`)
        ids = await tx.writeEvents(wanted)
        const rows = events.map((event, place) => rowOf(ids[place]!, event))
        await tx.execute(NOTE_ROWS.replace('$1', ':rows'), { rows: JSON.stringify(rows) })
        if (holdMs > 0) await pause(holdMs)
        if (end === 'rollback') throw new RolledBack()
      })
      for (const id of ids) told.committed.add(id)
      if (!idempotent) for (const id of earlier) told.rolledBack.add(id)
      return 'told'
    } catch (error) {
      // with an idempotency key the id may be that of another transaction's event
      const isUndone = !idempotent && !(error instanceof SqlError && error.kind === 'ambiguous')
      if (isUndone) for (const id of [...earlier, ...ids]) told.rolledBack.add(id)
      if (error instanceof RolledBack) return 'told'
      if (!(error instanceof SqlError)) throw error
      note(`writer: ${error.kind} ${error.errorName} ${error.message}: ${[...earlier, ...ids].join(' ')}`)
      told.failed += 1
      return 'failed'
    }
  }
}

/** By plain SQL over a connection of its own, as a service in any language does. */
class SqlWriter {
  #client: pg.Client | undefined

  constructor(
    private readonly url: string,
    private readonly told: Told,
    private readonly note: WritersOptions['note'],
  ) {}

  async write({ events, end, holdMs, number }: Operation, writer: number): Promise<Written> {
    let isCommitting = false
    const ids: string[] = []
    try {
      const client = await this.#connected()
      await client.query('BEGIN')
      for (const event of events) {
        const { rows } = await client.query<{ id: string }>(INSERT, [
          event.eventType,
          payloadOf(event, writer, number),
          event.key,
          event.destination,
          event.availableInMs,
          event.createdOffMs ?? 0,
        ])
        ids.push(rows[0]!.id)
      }
      await client.query(NOTE_ROWS, [JSON.stringify(events.map((event, place) => rowOf(ids[place]!, event)))])
      if (holdMs > 0) await pause(holdMs)
      isCommitting = end === 'commit'
      const { command } = await client.query(end)
      // what PostgreSQL makes of a COMMIT after an error
      const isCommitted = isCommitting && command === 'COMMIT'
      for (const id of ids) (isCommitted ? this.told.committed : this.told.rolledBack).add(id)
      return 'told'
    } catch (error) {
      this.told.failed += 1
      this.note(`plain SQL: ${error instanceof Error ? error.message : 'unknown'}: ${ids.join(' ')}`)
      if (!isCommitting) for (const id of ids) this.told.rolledBack.add(id)
      await this.end()
      return 'failed'
    }
  }

  async end(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => undefined)
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 10_000, query_timeout: 60_000 })
    client.on('error', () => undefined)
    await client.connect()
    return (this.#client = client)
  }
}

const INSERT = `INSERT INTO outbox (event_type, payload, ordering_key, destination, available_at, created_at)
  VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond', now() + $6 * interval '1 millisecond') RETURNING id`

/** An event that was there before, by its idempotency key, is noted already. */
const NOTE_ROWS = `INSERT INTO chaos.written (event_id, key, scheduled, skips)
  SELECT r.id, r.key, r.scheduled, r.skips
    FROM ROWS FROM (json_to_recordset(CAST($1 AS json)) AS (id uuid, key text, scheduled boolean, skips boolean))
         WITH ORDINALITY AS r(id, key, scheduled, skips, place)
   ORDER BY r.place ON CONFLICT (event_id) DO NOTHING`

function rowOf(id: string, { key, availableInMs, eventType }: PlannedEvent) {
  return { id, key, scheduled: availableInMs !== null, skips: eventType.startsWith('Skipped') }
}
