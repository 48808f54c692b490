import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, inject } from 'vitest'

export interface FreshDatabase {
  readonly name: string
  /** Connection string of the superuser, or of another role that the test made. */
  url(user?: string): string
  /** The rows of one statement, run by the superuser. */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** A connection of its own, ended with the database. */
  connect(user?: string): Promise<pg.Client>
  /** Ends all connections and removes the database. A test file need not call it. */
  drop(): Promise<void>
}

/**
 * An empty database of its own on the run's server, or on that of another superuser's connection string. Call it in a test
 * file (at top level, or in `beforeAll`): it is dropped after the file's last test. `name` is a prefix for people who look;
 * roles are shared by all databases.
 */
export async function freshDatabase(name = 'test', server = inject('postgresUrl')): Promise<FreshDatabase> {
  const database = `${name.toLowerCase().replaceAll(/\W/g, '_')}_${randomUUID().slice(0, 8)}`
  await once(server, `CREATE DATABASE ${database}`)
  const url = (user = 'postgres') => {
    const it = new URL(server)
    it.username = user
    it.pathname = database
    return it.href
  }
  const pool = new pg.Pool({ connectionString: url(), max: 5 })
  const clients = new Set<pg.Client>()
  // a connection that the server ends says so by an event that must be heard
  pool.on('error', () => undefined)
  let dropped: Promise<void> | undefined
  const drop = async () => {
    await Promise.all([pool.end(), ...[...clients].map((client) => client.end())])
    await once(server, `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)
  }
  const it: FreshDatabase = {
    name: database,
    url,
    query: async <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(sql, [...values])).rows,
    connect: async (user) => {
      const client = new pg.Client({ connectionString: url(user) })
      client.on('error', () => undefined)
      await client.connect()
      clients.add(client)
      return client
    },
    drop: () => (dropped ??= drop()),
  }
  afterAll(() => it.drop())
  return it
}

async function once(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
