import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { UserRole } from '../../src/core/database-user.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase } from '../../src/data-api/database.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { createDataApi, type DataApi } from '../../src/local/data-api/data-api.js'
import { startEndpoint, type Endpoint } from '../../src/local/endpoint/endpoint.js'
import { startPostgres, type LocalPostgres } from '../../src/local/postgres/launcher.js'
import { createSecretsManager } from '../../src/local/secrets/secrets-manager.js'
import { newPassword, scramVerifier } from '../../src/secrets/scram.js'
import { checkUser, makeUsers } from '../../src/store/users.js'
import { migrate } from '../../src/store/migrator.js'
import { sdkOptions } from '../support/local-services.js'

const resourceArn = 'arn:aws:rds:us-east-1:000000000000:cluster:test'
const secrets = createSecretsManager({ rotate: () => Promise.resolve(), log: () => undefined })
const requests: string[] = []
let postgres: LocalPostgres
let superuser: pg.Client
let dataApi: DataApi
let endpoint: Endpoint
let client: ReturnType<typeof createRdsDataClient>
let names = 0

/** A secret that logs in so. */
const secretOf = (username: string, password: string) =>
  secrets.create(`secret-${++names}`, JSON.stringify({ username, password }))
const databaseAs = (secretArn: string, database = 'orders') => createDataApiDatabase({ client, resourceArn, secretArn, database })

/** A user as Aurora's master is: no superuser, and its password is asked for. */
async function master(name: string, attributes = 'CREATEROLE'): Promise<string> {
  const password = newPassword()
  await superuser.query(`CREATE ROLE ${name} LOGIN ${attributes} PASSWORD '${password}'`)
  return secretOf(name, password)
}

const context = (secretArn: string, database = 'orders') => ({
  database: databaseAs(secretArn, database),
  schema: 'public',
  clock: systemClock,
  deadline: deadlineAfter(systemClock, 60_000),
})

/** A user to be made, with the secret that will log it in. */
function user(role: UserRole, name: string, password = newPassword()) {
  return { password, secret: secretOf(name, password), made: { role, name, verifier: scramVerifier(password) } }
}

const select = (sql: string, secretArn: string) =>
  databaseAs(secretArn).execute({ sql, repeatable: true }, { deadline: deadlineAfter(systemClock, 60_000) })

let owner: string
beforeAll(async () => {
  postgres = await startPostgres({ passwordsOf: ['"/^(?!postgres$)"'] })
  superuser = new pg.Client(postgres.url())
  await superuser.connect()
  dataApi = createDataApi({ server: postgres, resourceArn, readSecret: (arn) => Promise.resolve(secrets.read(arn)) })
  endpoint = await startEndpoint(0, (request) => {
    requests.push(request.body.toString())
    return dataApi.handle(request)
  })
  client = createRdsDataClient(sdkOptions(endpoint.url))
  owner = await master('master')
  await superuser.query('CREATE DATABASE orders OWNER master')
  await migrate(databaseAs(owner), { ...context(owner), installation: 'orders' })
}, 120_000)
afterEach(() => {
  requests.length = 0
})
afterAll(async () => {
  client.destroy()
  await endpoint.stop()
  await dataApi.stop()
  await superuser.end()
  await postgres.stop()
})

describe('a master that is no superuser, and made the roles', () => {
  it('makes users that log in with the password of their secret, and have the rights of their role alone', async () => {
    const made = (['relay', 'cleanup', 'monitor', 'canary'] as const).map((role) => user(role, `orders_${role}`))
    await makeUsers(
      context(owner),
      made.map((one) => one.made),
    )
    for (const { made: one, secret } of made) {
      const { rows } = await select('SELECT current_user::text AS me', secret)
      expect(rows).toEqual([{ me: one.name }])
      await checkUser(context(owner), one)
      await expect(select('SELECT payload FROM outbox', secret)).rejects.toMatchObject({ sqlState: '42501' })
    }
    const { rows } = await superuser.query<{ member: string; role: string }>(
      `SELECT m.rolname AS member, r.rolname AS role FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member
        JOIN pg_roles r ON r.oid = a.roleid WHERE m.rolname LIKE 'orders\\_%' ORDER BY 1`,
    )
    expect(rows).toEqual([
      { member: 'orders_canary', role: 'outbox_writer' },
      { member: 'orders_cleanup', role: 'outbox_cleanup' },
      { member: 'orders_monitor', role: 'outbox_monitor' },
      { member: 'orders_relay', role: 'outbox_relay' },
    ])
  })

  it('sends a verifier, and never the password', async () => {
    const { made, password, secret } = user('relay', 'quiet_relay')
    await makeUsers(context(owner), [made])
    await select('SELECT 1 AS one', secret)
    expect(requests.join('\n')).toContain('SCRAM-SHA-256$4096:')
    expect(requests.join('\n')).not.toContain(password)
  })

  it('gives a user that is there the new password; the old one is refused', async () => {
    const before = user('relay', 'turning_relay')
    const after = user('relay', 'turning_relay')
    await makeUsers(context(owner), [before.made])
    await makeUsers(context(owner), [after.made])
    await makeUsers(context(owner), [after.made])
    expect((await select('SELECT 1 AS one', after.secret)).rows).toHaveLength(1)
    await expect(select('SELECT 1 AS one', before.secret)).rejects.toMatchObject({
      errorName: 'InvalidSecretException',
      sqlState: '28P01',
    })
  })

  it('lets them into a database that is not open to everybody', async () => {
    await superuser.query('CREATE DATABASE closed OWNER master')
    await superuser.query('REVOKE CONNECT ON DATABASE closed FROM PUBLIC')
    const { made, secret } = user('monitor', 'closed_monitor')
    await migrate(databaseAs(owner, 'closed'), { ...context(owner, 'closed') })
    await makeUsers(context(owner, 'closed'), [made])
    const statement = { sql: 'SELECT 1 AS one', repeatable: true }
    const { rows } = await databaseAs(secret, 'closed').execute(statement, { deadline: deadlineAfter(systemClock, 60_000) })
    expect(rows).toHaveLength(1)
  })

  it('makes the same user twice at once', async () => {
    const { made, secret } = user('cleanup', 'twice_cleanup')
    await Promise.all([makeUsers(context(owner), [made]), makeUsers(context(owner), [made])])
    expect((await select('SELECT 1 AS one', secret)).rows).toHaveLength(1)
  })
})

describe('a master that lacks a right is told which statement gives it', () => {
  it('where another user made the roles', async () => {
    const other = await master('other_master')
    const { made, secret } = user('relay', 'other_relay')
    const refused = makeUsers(context(other), [made])
    await expect(refused).rejects.toThrow(
      /permission denied to grant role "outbox_relay"; as whoever made the role, GRANT outbox_relay TO "other_master" WITH ADMIN OPTION; or make the users yourself \(docs\/security\.md\)$/,
    )
    await superuser.query('GRANT outbox_relay TO "other_master" WITH ADMIN OPTION')
    await makeUsers(context(other), [made])
    expect((await select('SELECT 1 AS one', secret)).rows).toHaveLength(1)
  })

  it('where another user made the user', async () => {
    const other = await master('third_master')
    await superuser.query('CREATE ROLE theirs_relay LOGIN')
    const { made, secret } = user('relay', 'theirs_relay')
    await expect(makeUsers(context(other), [made])).rejects.toThrow(
      /as whoever made it, GRANT "theirs_relay" TO "third_master" WITH ADMIN OPTION/,
    )
    await superuser.query('GRANT theirs_relay TO third_master WITH ADMIN OPTION')
    await superuser.query('GRANT outbox_relay TO theirs_relay')
    await makeUsers(context(other), [made])
    expect((await select('SELECT 1 AS one', secret)).rows).toHaveLength(1)
  })

  it('where it may not make users at all', async () => {
    const other = await master('plain_user', '')
    await expect(makeUsers(context(other), [user('relay', 'no_relay').made])).rejects.toThrow(
      /permission denied to create role; as a superuser, ALTER ROLE "plain_user" CREATEROLE/,
    )
  })
})

describe('a name is refused', () => {
  it.each(['master', 'outbox_relay', 'public', `"; DROP TABLE outbox; --`, `it's`, 'é'.repeat(32)])('%s', async (name) => {
    await expect(makeUsers(context(owner), [user('relay', name).made])).rejects.toThrow(
      /runs the migration|must be a name of its own, at most 63 bytes, without quotes/,
    )
  })

  it('unless it only has to be quoted', async () => {
    const { made, secret } = user('relay', 'Orders-EU.1_relay')
    await makeUsers(context(owner), [made])
    expect((await select('SELECT current_user::text AS me', secret)).rows).toEqual([{ me: 'Orders-EU.1_relay' }])
  })
})

it('a user that is missing, or lost its rights, does not pass the check', async () => {
  const { made } = user('relay', 'checked_relay')
  const refusal = 'database user "checked_relay" cannot work as outbox_relay: it is missing or lacks rights'
  await expect(checkUser(context(owner), made)).rejects.toThrow(refusal)
  await makeUsers(context(owner), [made])
  await checkUser(context(owner), made)
  await superuser.query('REVOKE outbox_relay FROM checked_relay GRANTED BY master')
  await expect(checkUser(context(owner), made)).rejects.toThrow(refusal)
})
