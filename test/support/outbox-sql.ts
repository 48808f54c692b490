import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll } from 'vitest'
import { schemaSql } from '../../src/store/postgres/schema-sql.js'
import { freshDatabase, type FreshDatabase } from './postgres.js'

/** One connection: a session of its own, with its transactions and its plans. bigint comes as number. */
export interface Session {
  readonly client: pg.Client
  query<Row extends pg.QueryResultRow = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** The first column of the first row. */
  one<Value>(sql: string, values?: readonly unknown[]): Promise<Value>
}

export interface ClaimedRow {
  readonly id: string
  readonly shard: number
  readonly seq: number
  readonly event_type: string | null
  readonly event_version: number
  readonly aggregate_type: string | null
  readonly aggregate_id: string | null
  readonly ordering_key: string | null
  readonly destination: string | null
  readonly headers: string | null
  readonly attempts: number
  readonly starts: number
  readonly replays: number
  readonly reclaimed_from: string | null
  readonly suspects_wait: boolean
  readonly released: boolean
  readonly circuits: string | null
  readonly created_at_ms: number
  readonly due_at_ms: number
  readonly payload_bytes: number
  readonly payload: string | null
}

export interface Settled {
  readonly published: number
  readonly retried: number
  readonly held: number
  readonly failed: number
  readonly freed: number
  readonly given_back: number
  readonly kept: number
  readonly settled_before: number
}

export interface Claim {
  readonly token: string
  readonly rows: ClaimedRow[]
}

export interface Backlog {
  readonly oldest_due_ms: number | null
  readonly due: number
  readonly scheduled: number
  readonly backing_off: number
  readonly held: number
  readonly failed: number
  readonly blocked_keys: number
  readonly oldest_failed_ms: number | null
  readonly leased_shards: number
}

export type Published = Readonly<Record<'id' | 'destination' | 'messageId', string>> & { readonly replays?: number }
export type Change = Readonly<Record<string, unknown>> & { readonly id: string; readonly outcome: string }
type Event = Pick<ClaimedRow, 'id' | 'attempts'>
type Filter = Readonly<Record<string, unknown>>

const json = (value: unknown) => (value === null ? null : JSON.stringify(value))
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === pg.types.builtins.INT8 ? Number : (pg.types.getTypeParser(oid, format) as (text: string) => unknown),
}

export async function connect(url: string): Promise<Session> {
  const client = new pg.Client({ connectionString: url, types })
  client.on('error', () => undefined)
  await client.connect()
  const query = async <Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]) =>
    (await client.query<Row>(sql, values === undefined ? undefined : [...values])).rows
  return {
    client,
    query,
    one: async <Value>(sql: string, values?: readonly unknown[]) =>
      Object.values((await query(sql, values))[0] ?? {})[0] as Value,
  }
}

export interface OutboxDatabase extends FreshDatabase {
  open(user?: string): Promise<Session>
}

/** A database of its own with the outbox in schema public, dropped after the test file. */
export async function outboxDatabase(name: string): Promise<OutboxDatabase> {
  const database = await freshDatabase(name)
  await database.query(schemaSql({ schema: 'public' }))
  const sessions: Session[] = []
  afterAll(() => Promise.all(sessions.map(({ client }) => client.end())))
  return {
    ...database,
    open: async (user) => {
      const session = await connect(database.url(user))
      sessions.push(session)
      return session
    },
  }
}

export async function emptyOutbox(session: Session): Promise<void> {
  await session.query('TRUNCATE outbox, outbox_delivery, outbox_receipt, outbox_circuit, outbox_audit')
  await session.query(
    `UPDATE outbox_shard SET lease_token = NULL, lease_owner = NULL, lease_until = '-infinity', served_at = '-infinity',
       reclaimed_from = NULL, handed = '{}', settled_token = NULL`,
  )
}

/** Every lease runs out, as if its time had passed, and what was in hand then is under suspicion. */
export async function expireLeases(session: Session): Promise<void> {
  await session.query(`UPDATE outbox_shard SET lease_until = '-infinity'`)
}

/** As if its suspects had been served: the next claim takes all that is due at once. */
export async function clearSuspicion(session: Session): Promise<void> {
  await session.query(`UPDATE outbox_shard SET handed = '{}' WHERE lease_until <= clock_timestamp()`)
}

/** Inserts `count` events, numbered `i` from `from`; the options are SQL expressions that may use `i`. */
export async function add(
  session: Session,
  count: number,
  options: { key?: string; type?: string; payload?: string; from?: number; columns?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const { key = 'NULL', type = 't', payload = `'{"i":' || i || '}'`, from = 1, columns = {} } = options
  const extra = (parts: readonly string[]) => parts.map((part) => `, ${part}`).join('')
  await session.query(
    `INSERT INTO outbox (event_type, payload, ordering_key${extra(Object.keys(columns))})
     SELECT '${type}', ${payload}, ${key}${extra(Object.values(columns))} FROM generate_series(${from}, ${from + count - 1}) i`,
  )
}

// ---- the calls of relay, cleanup and operator ---------------------------------------------------------------------

export interface ClaimOptions {
  readonly token?: string
  readonly rows?: number
  readonly bytes?: number
  readonly keyRows?: number
  readonly shards?: number
  readonly leaseSeconds?: number
  readonly inFlight?: readonly string[]
  /** Default null: suspects are not welcome. */
  readonly suspectLeaseSeconds?: number
}

export async function claim(session: Session, options: ClaimOptions = {}): Promise<Claim> {
  const { token = randomUUID(), rows = 500, bytes = 700_000, keyRows = 500, shards = 16, leaseSeconds = 30 } = options
  const { rows: claimed } = await session.client.query<ClaimedRow>({
    name: 'claim', // prepared once a session, so that its plans age as a relay's do
    text: 'SELECT * FROM outbox_claim(CAST($1 AS uuid), $2, $3, $4, $5, $6, $7, $8, $9)',
    values: [
      token,
      'test',
      rows,
      bytes,
      keyRows,
      shards,
      leaseSeconds,
      json(options.inFlight ?? null),
      options.suspectLeaseSeconds ?? null,
    ],
  })
  return { token, rows: claimed }
}

export async function settle(
  session: Session,
  token: string,
  published: readonly Published[] | null,
  changes: readonly Change[] | null = null,
  done: readonly number[] | null = null,
): Promise<Settled> {
  const { rows } = await session.client.query<Settled>({
    name: 'settle',
    text: 'SELECT * FROM outbox_settle(CAST($1 AS uuid), $2, $3, $4)',
    values: [token, json(published), json(changes), json(done)],
  })
  return rows[0]!
}

export const giveBack = (session: Session, { token }: Claim) => settle(session, token, null)
export const published = (rows: readonly ClaimedRow[]): Published[] =>
  rows.map((event) => ({
    id: event.id,
    destination: event.destination ?? 'q',
    messageId: `m${event.seq}`,
    replays: event.replays,
  }))
export const retry = ({ id, attempts }: Event, delayMs = 0, charge: 'charged' | 'free' = 'charged'): Change => ({
  id,
  attempts,
  outcome: 'retry',
  delayMs,
  charge: charge === 'charged',
  error: 'boom',
})
export const hold = ({ id, attempts }: Event, destination = 'D'): Change => ({
  id,
  attempts,
  outcome: 'hold',
  destination,
  error: 'open',
})
export const fail = ({ id, attempts }: Event, onFailure: 'block' | 'skip' = 'block'): Change => ({
  id,
  attempts,
  outcome: 'failed',
  charge: true,
  block: onFailure === 'block',
  error: 'bad',
})

const allShards = Array.from({ length: 16 }, (_, shard) => shard)
export const renew = (session: Session, token: string, shards: readonly number[] = allShards, seconds = 30) =>
  session.one<number>('SELECT outbox_renew(CAST($1 AS uuid), $2, $3)', [token, json(shards), seconds])
export const start = (session: Session, token: string, id: string) =>
  session.one<boolean>('SELECT outbox_start(CAST($1 AS uuid), CAST($2 AS uuid))', [token, id])
/** Brings back at most so many events that are aside; answers how many came. */
export const unhold = async (session: Session, destination = 'D', rows = 1000) => {
  const aside = () =>
    session.one<number>('SELECT CAST(count(*) AS integer) FROM outbox_delivery WHERE held_by = $1', [
      `destination:${destination}`,
    ])
  const before = await aside()
  await session.query('SELECT outbox_circuits($1, 1000000000)', [json({ [destination]: rows })])
  return before - (await aside())
}
export const backlog = async (session: Session) =>
  (await session.query('SELECT * FROM outbox_backlog()'))[0] as unknown as Backlog
export const cleanup = (session: Session, retentionSeconds = 0, rows = 1000) =>
  session.one<number>('SELECT outbox_cleanup($1, $2)', [retentionSeconds, rows])
export const expireFailed = (session: Session, retentionSeconds: number, rows = 1000) =>
  session.one<number>('SELECT outbox_expire_failed($1, $2)', [retentionSeconds, rows])

type Mode = { readonly rows?: number; readonly mode?: 'real' | 'dry-run' }
export const operate = (session: Session, action: string, filter: Filter = {}, { rows = 1000, mode = 'real' }: Mode = {}) =>
  session.one<number>('SELECT outbox_operate($1, $2, $3, $4, $5, $6)', [
    action,
    json(filter),
    rows,
    mode === 'dry-run',
    'ann',
    'test',
  ])
export const replay = (session: Session, filter: Filter = {}, { rows = 1000, mode = 'real' }: Mode = {}) =>
  session.one<number>('SELECT outbox_replay($1, $2, $3, $4, $5)', [json(filter), rows, mode === 'dry-run', 'ann', 'test'])
export const repair = async (session: Session, after: string | null = null, { rows = 1000, mode = 'real' }: Mode = {}) =>
  (
    await session.query('SELECT * FROM outbox_repair(CAST($1 AS uuid), $2, $3, $4, $5, NULL)', [
      after,
      rows,
      mode === 'dry-run',
      'ann',
      'test',
    ])
  )[0] as unknown as {
    next_after: string | null
    stateless: number
  }

// ---- what there is ------------------------------------------------------------------------------------------------

export const count = (session: Session, of: string) => session.one<number>(`SELECT count(*) FROM ${of}`)
export const queued = (session: Session) => count(session, 'outbox_delivery')

/** Claims and publishes until nothing is due; answers what was claimed, in that order. */
export async function drain(session: Session, options: ClaimOptions = {}): Promise<ClaimedRow[]> {
  const all: ClaimedRow[] = []
  for (;;) {
    const { token, rows } = await claim(session, options)
    if (rows.length === 0) return all
    all.push(...rows)
    await settle(session, token, published(rows))
  }
}

/** Events of a key that came before an earlier one of that key. */
export function outOfOrder(rows: readonly Pick<ClaimedRow, 'ordering_key' | 'seq'>[]): number {
  const last = new Map<string, number>()
  return rows.filter(({ ordering_key: key, seq }) => {
    if (key === null) return false
    const before = last.get(key) ?? -1
    last.set(key, Math.max(before, seq))
    return seq < before
  }).length
}

/** What must be 0 at every moment between two transactions. */
export const soundState = { inNoState: 0, inTwoStates: 0, heldBehindNothing: 0, heldWithoutBlocking: 0 }
export async function stateOf(session: Session): Promise<typeof soundState> {
  const [row] = await session.query(
    `SELECT (SELECT count(*) FROM outbox o WHERE NOT EXISTS (SELECT 1 FROM outbox_delivery d WHERE d.event_id = o.id)
               AND NOT EXISTS (SELECT 1 FROM outbox_receipt r WHERE r.event_id = o.id)) AS "inNoState",
            (SELECT count(*) FROM outbox_delivery JOIN outbox_receipt USING (event_id)) AS "inTwoStates",
            (SELECT count(*) FROM outbox_delivery h WHERE h.held_by = 'key' AND NOT EXISTS
               (SELECT 1 FROM outbox_delivery b WHERE b.shard = h.shard AND b.ordering_key = h.ordering_key AND b.blocks_key
                   AND b.seq < h.seq AND b.held_by IS DISTINCT FROM 'key')) AS "heldBehindNothing",
            (SELECT count(*) FROM outbox_delivery h WHERE h.held_by = 'key' AND NOT h.blocks_key) AS "heldWithoutBlocking"`,
  )
  return row as typeof soundState
}

/** The SQLSTATE that a call fails with, or `ok`. */
export const sqlStateOf = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  )

/** An ordering key of the given shard; others of it by `nth`. */
export const keyOf = (session: Session, shard: number, nth = 0) =>
  session.one<string>(
    `SELECT 'k' || g FROM generate_series(1, 2000) g WHERE outbox_key_shard('k' || g) = $1 ORDER BY g LIMIT 1 OFFSET $2`,
    [shard, nth],
  )

// ---- waiting for a named signal -----------------------------------------------------------------------------------

/** Polls until `look` answers something but null, undefined, false or 0. */
export async function eventually<Value>(look: () => Promise<Value>, limitMs = 10_000): Promise<Value> {
  for (const until = performance.now() + limitMs; ;) {
    const value = await look()
    if (Boolean(value)) return value
    if (performance.now() > until) throw new Error(`not within ${limitMs} ms`)
    await pause(5)
  }
}

export const backendOf = (session: Session) => session.one<number>('SELECT pg_backend_pid()')

/** Resolves when that backend waits for a lock. */
export const waitsForLock = (observer: Session, backend: number) =>
  eventually(() => observer.one<boolean>(`SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1`, [backend]))

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** What `call` answers; how many milliseconds it took goes into `into`. */
export async function timed<Value>(into: number[], call: () => Promise<Value>): Promise<Value> {
  const began = performance.now()
  const value = await call()
  into.push(performance.now() - began)
  return value
}

/** Pages that a statement touched, those of the functions that it calls included: what it costs, whatever else the machine does. */
export async function pagesOf(session: Session, sql: string, values: readonly unknown[] = []): Promise<number> {
  const [row] = await session.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`, values)
  const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: Record<string, number> }]
  return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
}

/** A claim, and the pages that it touched. */
export async function claimCounted(session: Session, options: ClaimOptions = {}): Promise<Claim & { readonly pages: number }> {
  const token = randomUUID()
  const { rows = 500, bytes = 700_000, keyRows = 500, shards = 16, leaseSeconds = 30 } = options
  const pages = await pagesOf(session, 'SELECT * FROM outbox_claim(CAST($1 AS uuid), $2, $3, $4, $5, $6, $7, NULL, NULL)', [
    token,
    'test',
    rows,
    bytes,
    keyRows,
    shards,
    leaseSeconds,
  ])
  return { ...(await claim(session, { ...options, token })), pages }
}
