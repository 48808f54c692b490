import type { Pool } from 'pg'
import { userName, userRoles, type UserRole } from '../../core/database-user.js'
import { newPassword } from '../../secrets/scram.js'
import type { UserSecrets } from '../../secrets/user-secrets.js'
import { ACCOUNT, REGION } from '../front/protocol.js'
import type { LocalPostgres } from '../postgres/launcher.js'
import type { LocalState } from '../control/control.js'
import { secretArn, type SecretsManager } from '../secrets/secrets-manager.js'

export const DATABASE = 'outbox'
export const RESOURCE_ARN = `arn:aws:rds:${REGION}:${ACCOUNT}:cluster:local`
export const INSTALLATION = 'local'

export type LoginName = 'owner' | UserRole

/** The secret of a function's user, or of the database's owner. */
export const loginSecretArn = (login: LoginName): string => secretArn(`outbox/${login}`)

/** Whom the migration makes: the functions have no more rights than in an account. */
export const USER_SECRETS: UserSecrets = Object.fromEntries(userRoles.map((role) => [role, loginSecretArn(role)]))

/** Makes the secrets as the stack in an account does. The owner is asked for no password. */
export function createSecrets(secrets: SecretsManager): void {
  secrets.create('outbox/owner', JSON.stringify({ username: 'postgres', password: 'none' }))
  for (const role of userRoles)
    secrets.create(`outbox/${role}`, JSON.stringify({ username: userName(INSTALLATION, role), password: newPassword() }))
}

/** The functions' users, also those of an installation elsewhere. A service's own user, a member of outbox_writer, needs none. */
export const PASSWORDS_OF = ['+outbox_relay', '+outbox_cleanup', '+outbox_monitor', '"/_canary(_2)?$"']

/** The stack's own connection to its database, beside the Data API, whose calls it must not add to. */
export interface OutboxDatabase {
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
