import { MAX_NAME_BYTES, type DatabaseUser, type UserRole } from '../core/database-user.js'
import { SchemaError, SqlError } from '../core/errors.js'
import type { SqlTransaction } from '../core/ports.js'
import { migrationTransaction, type MigrationContext } from './migration-transaction.js'
import { boolean, single, text } from './postgres/row.js'

/** What a function's user is a member of. */
const DATABASE_ROLES: Readonly<Record<UserRole, string>> = {
  relay: 'outbox_relay',
  cleanup: 'outbox_cleanup',
  monitor: 'outbox_monitor',
  canary: 'outbox_writer',
}

/**
 * Makes the functions' database users, or gives those that are there the password whose verifier is given. Each becomes a
 * member of its role, by which it has its rights, and may connect to this database. Repeats change nothing but the
 * verifier's salt: what a user that is no superuser may not read cannot be compared.
 *
 * Throws `SchemaError`: the database's own user lacks a right (the message says which statement gives it), or a name is no
 * good. Throws `SqlError` if the database cannot be reached at all.
 *
 * @example
 * await makeUsers({ database, schema: 'public', clock, deadline }, [{ role: 'relay', name: 'orders_relay', verifier }])
 */
export async function makeUsers(context: MigrationContext, users: readonly DatabaseUser[]): Promise<void> {
  if (users.length === 0) return
  await migrationTransaction(context, 'database users', async (transaction) => {
    // Users belong to the whole cluster, and two who alter one at once fail. The lock is the schema's own (migration-transaction.ts).
    await run(context, transaction, 'SELECT 1 AS locked FROM pg_advisory_xact_lock(1869968482, -2)')
    for (const user of users) await makeUser(context, transaction, user)
  })
}

/** Throws `SchemaError` unless the user is there, may log in, and has the rights of its role. */
export async function checkUser(context: MigrationContext, user: DatabaseUser): Promise<void> {
  await migrationTransaction(context, 'database users', async (transaction) => {
    const found = await look(context, transaction, user)
    if (!found.ready) {
      throw new SchemaError(
        `database user "${user.name}" cannot work as ${DATABASE_ROLES[user.role]}: it is missing or lacks rights`,
      )
    }
  })
}

async function makeUser(context: MigrationContext, transaction: SqlTransaction, user: DatabaseUser): Promise<void> {
  const name = quotedName(user)
  const role = DATABASE_ROLES[user.role]
  const before = await look(context, transaction, user)
  if (before.self) {
    throw new SchemaError(
      `database user "${user.name}" runs the migration: give the ${user.role} a user of its own in its secret`,
    )
  }
  const me = `"${before.me}"`
  // a verifier's characters are those of base64 and $ : -
  const login = `ROLE ${name} LOGIN PASSWORD '${user.verifier}'`
  if (before.present) {
    await run(context, transaction, `ALTER ${login}`, `as whoever made it, GRANT ${name} TO ${me} WITH ADMIN OPTION`)
  } else {
    await run(context, transaction, `CREATE ${login}`, `as a superuser, ALTER ROLE ${me} CREATEROLE`)
  }
  if (!before.member) {
    await run(
      context,
      transaction,
      `GRANT ${role} TO ${name}`,
      `as whoever made the role, GRANT ${role} TO ${me} WITH ADMIN OPTION`,
    )
  }
  if (!(await look(context, transaction, user)).ready) {
    const database = `"${before.database.replaceAll('"', '""')}"`
    const advice = `as the database's owner, GRANT CONNECT ON DATABASE ${database} TO ${role}`
    await run(context, transaction, `GRANT CONNECT ON DATABASE ${database} TO ${name}`, advice)
    // without the right to grant, PostgreSQL may only warn
    if (!(await look(context, transaction, user)).ready) throw new SchemaError(`database user ${name} may not connect: ${advice}`)
  }
}

interface Seen {
  readonly me: string
  readonly database: string
  readonly self: boolean
  readonly present: boolean
  readonly member: boolean
  /** It may log in, connect to this database, and use the rights of its role. */
  readonly ready: boolean
}

async function look({ deadline }: MigrationContext, transaction: SqlTransaction, { name, role }: DatabaseUser): Promise<Seen> {
  const sql = `SELECT current_user::text AS me, current_database()::text AS database, u.oid IS NOT NULL AS present,
      COALESCE(pg_has_role(u.oid, r.oid, 'USAGE'), false) AS member,
      COALESCE(u.rolcanlogin AND has_database_privilege(u.oid, current_database(), 'CONNECT')
        AND pg_has_role(u.oid, r.oid, 'USAGE'), false) AS ready
    FROM (SELECT 1) AS one LEFT JOIN pg_roles u ON u.rolname = :name LEFT JOIN pg_roles r ON r.rolname = :role`
  const parameters = { name, role: DATABASE_ROLES[role] }
  const { rows } = await transaction.execute({ sql, parameters, repeatable: true }, { deadline })
  const row = single(rows)
  const me = text(row, 'me')
  return {
    me,
    database: text(row, 'database'),
    self: me === name,
    present: boolean(row, 'present'),
    member: boolean(row, 'member'),
    ready: boolean(row, 'ready'),
  }
}

/** `advice`: what to do if the user that runs this lacks the right. */
async function run({ deadline }: MigrationContext, transaction: SqlTransaction, sql: string, advice?: string): Promise<void> {
  try {
    await transaction.execute({ sql, repeatable: false }, { deadline })
  } catch (error) {
    if (advice === undefined || !(error instanceof SqlError) || error.sqlState !== '42501') throw error
    const [said] = error.message.split(';')
    throw new SchemaError(`database users: ${said}; ${advice}; or make the users yourself (docs/security.md)`, { cause: error })
  }
}

function quotedName({ name, role }: DatabaseUser): string {
  const isRole = name === 'public' || Object.values(DATABASE_ROLES).includes(name)
  if (Buffer.byteLength(name) > MAX_NAME_BYTES || /[\0"']/.test(name) || isRole) {
    throw new SchemaError(
      `the ${role}'s secret names the database user ${JSON.stringify(name)}: it must be a name of its own, at most ${MAX_NAME_BYTES} bytes, without quotes`,
    )
  }
  return `"${name}"`
}
