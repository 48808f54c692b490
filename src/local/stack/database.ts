import type { Pool } from 'pg'
import { ACCOUNT, REGION } from '../front/protocol.js'
import type { LocalPostgres } from '../postgres/launcher.js'
import type { LocalState } from '../control/control.js'

export const DATABASE = 'outbox'
export const RESOURCE_ARN = `arn:aws:rds:${REGION}:${ACCOUNT}:cluster:local`

/** Who may log in, by the last part of the secret's name. The functions have no more rights than in an account. */
const LOGINS = {
  owner: { user: 'postgres', role: undefined },
  relay: { user: 'outbox_local_relay', role: 'outbox_relay' },
  cleanup: { user: 'outbox_local_cleanup', role: 'outbox_cleanup' },
  monitor: { user: 'outbox_local_monitor', role: 'outbox_monitor' },
} as const
export type LoginName = keyof typeof LOGINS

/** Secrets Manager ends every secret's ARN with six characters of its own. */
export function secretArn(login: LoginName): string {
  return `arn:aws:secretsmanager:${REGION}:${ACCOUNT}:secret:outbox/${login}-Local1`
}

/** What each secret holds. */
export const SECRETS = Object.fromEntries(
  (Object.keys(LOGINS) as LoginName[]).map((name) => [secretArn(name), { user: LOGINS[name].user }]),
)

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
      for (const { user, role } of Object.values(LOGINS)) {
        if (role === undefined) continue
        const { rowCount } = await pool.query('SELECT FROM pg_roles WHERE rolname = $1', [user])
        if (rowCount === 0) await pool.query(`CREATE ROLE ${user} LOGIN`)
        await pool.query(`GRANT ${role} TO ${user}`)
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
