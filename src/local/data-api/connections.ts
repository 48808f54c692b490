import type { Pool, PoolClient, QueryResult } from 'pg'
import { loadPg } from '../pg.js'
import { connectFault } from './database-error.js'

/** What a secret holds. */
export interface DatabaseLogin {
  readonly user: string
  readonly password: string
}

export interface DatabaseServer {
  readonly host: string
  readonly port: number
}

export interface Connection {
  readonly client: PoolClient
  /** Set once the server or the network has ended it. */
  readonly isBroken: () => boolean
  /** Gives it back without a trace of what was done on it; one that cannot be cleaned is closed. Never throws. */
  release(): void
  /** Closes it; the server rolls back what was open. */
  destroy(): void
}

export interface Connections {
  /** Throws `DataApiFault`: invalid login, no such database, database unavailable. */
  open(login: DatabaseLogin, database: string): Promise<Connection>
  /** Cancels what the backend is running, if it still runs. Never throws. */
  cancel(login: DatabaseLogin, database: string, backendId: number): Promise<void>
  close(): Promise<void>
}

/** One pool for each login and database. Below the limit of 300 of the local PostgreSQL, with room for others. */
const POOL_SIZE = 100
/** After that a call is told that the database is not available, as if no connection could be made. */
const CONNECT_TIMEOUT_MS = 10_000

/** @throws OutboxError `PgMissing` if the package `pg` is not installed. */
export async function createConnections(server: DatabaseServer): Promise<Connections> {
  const pg = await loadPg()
  const pools = new Map<string, Pool>()
  const opened = new Set<Connection>()
  const config = (login: DatabaseLogin, database: string) => ({
    ...server,
    user: login.user,
    password: login.password,
    database,
    ssl: false,
    application_name: 'data-api',
    // as the service: timestamps without zone are UTC, dates and bytes have one form each
    options: '-c timezone=UTC -c datestyle=ISO -c bytea_output=hex -c intervalstyle=postgres -c client_encoding=UTF8',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  })

  const poolFor = (login: DatabaseLogin, database: string): Pool => {
    const key = JSON.stringify([login.user, login.password, database])
    const known = pools.get(key)
    if (known !== undefined) return known
    const pool = new pg.Pool({ ...config(login, database), max: POOL_SIZE, idleTimeoutMillis: 10_000, allowExitOnIdle: true })
    // an idle connection that breaks leaves the pool; the next call opens another
    pool.on('error', () => undefined)
    pools.set(key, pool)
    return pool
  }

  return {
    open: async (login, database) => {
      try {
        const connection = wrap(await poolFor(login, database).connect(), () => opened.delete(connection))
        opened.add(connection)
        return connection
      } catch (error) {
        throw connectFault(error)
      }
    },
    cancel: async (login, database, backendId) => {
      const client = new pg.Client(config(login, database))
      client.on('error', () => undefined)
      try {
        await client.connect()
        await client.query('SELECT pg_cancel_backend($1)', [backendId])
      } catch {
        // the server is gone, and with it the statement
      } finally {
        await client.end().catch(() => undefined)
      }
    },
    close: async () => {
      for (const connection of opened) connection.destroy()
      await Promise.all([...pools.values()].map((pool) => pool.end()))
    },
  }
}

function wrap(client: PoolClient, onEnd: () => void): Connection {
  let broken = false
  let ended = false
  // stays on a connection that is closed: it may still complain while it goes
  const onError = () => {
    broken = true
  }
  client.on('error', onError)
  const end = (action: () => void) => {
    if (ended) return
    ended = true
    onEnd()
    action()
  }
  const close = () => client.release(true)
  const giveBack = () => {
    client.off('error', onError)
    client.release()
  }
  return {
    client,
    isBroken: () => broken,
    release: () => end(() => (broken ? close() : void client.query('DISCARD ALL').then(giveBack, close))),
    destroy: () => end(close),
  }
}

/** Runs one statement over the extended protocol, which takes no second one, and leaves every value as text. */
export function run(
  client: PoolClient,
  text: string,
  values: readonly (string | Buffer | null)[],
): Promise<QueryResult<(string | null)[]>> {
  const query = {
    text,
    values: [...values],
    rowMode: 'array' as const,
    queryMode: 'extended',
    types: { getTypeParser: () => (value: string) => value },
  }
  return client.query<(string | null)[]>(query)
}
