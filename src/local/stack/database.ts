import { randomInt } from 'node:crypto'
import type { Pool } from 'pg'
import { ACCOUNT, REGION } from '../front/protocol.js'
import type { LocalPostgres } from '../postgres/launcher.js'
import type { LocalState } from '../control/control.js'
import { secretArn, type SecretsManager } from '../secrets/secrets-manager.js'

export const DATABASE = 'outbox'
export const RESOURCE_ARN = `arn:aws:rds:${REGION}:${ACCOUNT}:cluster:local`
export const INSTALLATION = 'local'

/** Functions with a database user of their own, whom the migration makes; they have no more rights than in an account. */
const USERS = ['relay', 'cleanup', 'monitor', 'canary'] as const
export type LoginName = 'owner' | (typeof USERS)[number]

/** The secret of a function's user, or of the database's owner. */
export const loginSecretArn = (login: LoginName): string => secretArn(`outbox/${login}`)

/** Makes the secrets as the stack in an account does. The owner is asked for no password. */
export function createSecrets(secrets: SecretsManager): void {
  secrets.create('outbox/owner', JSON.stringify({ username: 'postgres', password: 'none' }))
  for (const user of USERS)
    secrets.create(`outbox/${user}`, JSON.stringify({ username: `${INSTALLATION}_${user}`, password: password() }))
}

const password = (): string => Array.from({ length: 40 }, () => randomInt(36).toString(36)).join('')

/** The stack's own connection to its database, beside the Data API, whose calls it must not add to. */
export interface OutboxDatabase {
  /** Lets the functions' users log in, once the migration has made their roles. */
  createLogins(): Promise<void>
  backlog(): Promise<LocalState['backlog']>
  close(): Promise<void>
}

/** Creates the database `outbox` unless it is there. */
export async function openDatabase(postgres: LocalPostgres): Promise<OutboxDatabase> {
  const { Client, Pool } = (await import('pg')).default
  const server = new Client({ connectionString: postgres.url() })
  await server.connect()
  try {
    const { rowCount } = await server.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE])
    if (rowCount === 0) await server.query(`CREATE DATABASE ${DATABASE}`)
  } finally {
    await server.end()
  }
  const pool: Pool = new Pool({ connectionString: postgres.url(DATABASE), max: 2 })
  // a connection that the server ends is replaced by the next call
  pool.on('error', () => undefined)
  return {
    async createLogins() {
      for (const user of USERS) {
        const name = `${INSTALLATION}_${user}`
        const { rowCount } = await pool.query('SELECT FROM pg_roles WHERE rolname = $1', [name])
        if (rowCount === 0) await pool.query(`CREATE ROLE ${name} LOGIN`)
        await pool.query(`GRANT outbox_${user === 'canary' ? 'writer' : user} TO ${name}`)
      }
    },
    async backlog() {
      type Row = { readonly due: string; readonly failed: string; readonly oldest_due_ms: string | null }
      const { rows } = await pool.query<Row>('SELECT due, failed, oldest_due_ms FROM outbox_backlog()')
      const [row] = rows
      return {
        depth: Number(row?.due ?? 0),
        failed: Number(row?.failed ?? 0),
        ageSeconds: Number(row?.oldest_due_ms ?? 0) / 1000,
      }
    },
    close: () => pool.end(),
  }
}
