import { afterEach, describe, expect, test } from 'vitest'
import { deadlineAfter } from '../../src/core/deadline.js'
import { SchemaError } from '../../src/core/errors.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase } from '../../src/data-api/database.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { schemaVersion } from '../../src/store/check-schema.js'
import { relayVersion } from '../../src/core/version.js'
import { migrate, migrateInbox, type MigrateOptions } from '../../src/store/migrator.js'
import { insertEventsStatement } from '../../src/store/postgres/insert-events.js'
import { createOutboxStore } from '../../src/store/postgres/outbox-store.js'
import { readFunctions, readMigrations } from '../../src/store/postgres/schema-files.js'
import { inboxSql, schemaSql } from '../../src/store/postgres/schema-sql.js'
import { startTestDataApi } from '../support/data-api.js'
import { claimRequest, newEvent } from './store-contract.js'

const api = await startTestDataApi()
const client = createRdsDataClient(api.clientConfig)
const databaseAs = (secretArn: string) =>
  createDataApiDatabase({ client, resourceArn: api.resourceArn, secretArn, database: api.database })
const database = databaseAs(api.secretArn)
const files = [...readMigrations(), ...readFunctions()].map(({ name }) => name)
let schemas = 0
const emptySchema = () => `s${++schemas}`
/** A schema with the outbox in it. */
const installed = async () => {
  const schema = emptySchema()
  await api.db.query(schemaSql({ schema }))
  return schema
}
const within = (schema: string, options: Partial<MigrateOptions> = {}): MigrateOptions => ({
  schema,
  clock: systemClock,
  deadline: deadlineAfter(systemClock, 60_000),
  ...options,
})
afterEach(() => api.clearFaults())

/** The schema as PostgreSQL describes it, without its name. */
async function describeSchema(schema: string): Promise<unknown> {
  const rows = await api.db.query(
    `SELECT 'column' AS kind, c.relname || '.' || a.attname AS name, format_type(a.atttypid, a.atttypmod) AS definition
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = CAST(CAST($1 AS text) AS regnamespace) AND a.attnum > 0
      UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = $1
      UNION ALL SELECT 'function', proname, pg_get_functiondef(p.oid) || COALESCE(CAST(proacl AS text), '') FROM pg_proc p
       WHERE pronamespace = CAST(CAST($1 AS text) AS regnamespace)
      UNION ALL SELECT 'rights', relname, CAST(relacl AS text) FROM pg_class WHERE relnamespace = CAST(CAST($1 AS text) AS regnamespace) AND relkind IN ('r', 'v')
      ORDER BY 1, 2, 3`,
    [schema],
  )
  return JSON.parse(JSON.stringify(rows).replaceAll(new RegExp(`(\\\\"|\\b)${schema}\\1`, 'g'), 'schema')) as unknown
}

const deliverOne = async (schema: string) => {
  const event = newEvent({ orderingKey: 'k' })
  await database.execute(insertEventsStatement([event], schema))
  const store = createOutboxStore(database, { schema })
  const request = claimRequest()
  const { events } = await store.claim(request)
  const outcome = { kind: 'published', destination: 'queue', messageId: 'm' } as const
  const answer = await store.settle({ token: request.token, events: [{ id: event.id, attempts: 0, outcome }], done: null })
  return [events.map(({ id }) => id === event.id), answer.published]
}

describe('a migration', () => {
  test('installs the outbox in an empty schema, and done again it changes nothing', async () => {
    const schema = emptySchema()
    expect(await migrate(database, within(schema))).toEqual({ schema, schemaVersion, applied: files, installation: null })
    expect(await deliverOne(schema)).toEqual([[true], 1])
    // ON CONFLICT watches one index: with another one, two migrators at one file would now and then fail in place of waiting
    const unique = `SELECT indexname FROM pg_indexes WHERE schemaname = $1 AND tablename = 'outbox_migration'`
    expect(await api.db.query(unique, [schema])).toEqual([{ indexname: 'outbox_migration_pkey' }])
    api.requests.length = 0
    expect(await migrate(database, within(schema))).toEqual({ schema, schemaVersion, applied: [], installation: null })
    expect(api.requests.map(({ operation }) => operation)).not.toContain('BeginTransaction')
  })

  test('serves two outboxes in one database, each with its own events, in schemas of any plain name', async () => {
    await migrate(database, within('public'))
    await migrate(database, within('select')) // a reserved word
    expect(await deliverOne('select')).toEqual([[true], 1])
    expect(await createOutboxStore(database, { schema: 'public' }).backlog()).toMatchObject({ depth: 0 })
    expect(await deliverOne('public')).toEqual([[true], 1])
    expect(await api.db.query(`SELECT count(*)::int AS events FROM "select".outbox`)).toEqual([{ events: 1 }])
    expect(await describeSchema('select')).toEqual(await describeSchema('public'))
  })

  test('refuses a schema name that would have to be escaped', async () => {
    await expect(migrate(database, within('a"; DROP SCHEMA public'))).rejects.toThrow(/plain lower-case PostgreSQL name/)
  })

  test.each([2, 4])('is done once by %i migrators at the same time', async (migrators) => {
    const schema = emptySchema()
    const reports = await Promise.all(Array.from({ length: migrators }, () => migrate(database, within(schema))))
    expect(reports.flatMap(({ applied }) => applied).sort()).toEqual([...files].sort())
    expect(await deliverOne(schema)).toEqual([[true], 1])
  })

  test('survives a database that is resuming, and calls that fail before and after their effect', async () => {
    const schema = emptySchema()
    const resuming = { kind: 'error', name: 'DatabaseResumingException' } as const
    api.inject({ times: 1, fault: resuming })
    api.inject({ operation: 'BeginTransaction', times: 1, fault: { kind: 'drop-reply' } })
    api.inject({ match: 'CREATE TABLE outbox_delivery', fault: { kind: 'reset' } })
    api.inject({ match: 'CREATE VIEW outbox_status', fault: { kind: 'drop-reply' } })
    api.inject({ match: 'FUNCTION outbox_claim', fault: { kind: 'error', name: 'DatabaseUnavailableException', status: 504 } })
    api.inject({ operation: 'CommitTransaction', times: 3, fault: { kind: 'drop-reply' } })
    await migrate(database, within(schema))
    expect(await deliverOne(schema)).toEqual([[true], 1])
    await migrate(database, within('reference'))
    expect(await describeSchema(schema)).toEqual(await describeSchema('reference'))
  })

  test('waits for tables that are in use, 2 s at a time, and goes on when they are free', async () => {
    const schema = await installed()
    await api.db.query(`DELETE FROM ${schema}.outbox_migration WHERE name = 'functions/outbox_claim.sql'`)
    const other = await api.db.connect()
    await other.query('BEGIN')
    await other.query(`INSERT INTO ${schema}.outbox_migration (name, checksum) VALUES ('functions/outbox_claim.sql', 'x')`)
    let waits = 0
    const clock = {
      ...systemClock,
      sleep: async (ms: number, signal?: AbortSignal) => {
        if (waits++ === 0) await other.query('ROLLBACK')
        await systemClock.sleep(Math.min(ms, 1), signal)
      },
    }
    expect((await migrate(database, within(schema, { clock }))).applied).toEqual(['functions/outbox_claim.sql'])
    expect(waits).toBe(1)
  })

  test('gives up at its deadline, and says where it was', async () => {
    const schema = await installed()
    await api.db.query(`DELETE FROM ${schema}.outbox_migration WHERE name = 'functions/outbox_claim.sql'`)
    const other = await api.db.connect()
    await other.query('BEGIN')
    await other.query(`INSERT INTO ${schema}.outbox_migration (name, checksum) VALUES ('functions/outbox_claim.sql', 'x')`)
    const failure = await migrate(database, within(schema, { deadline: deadlineAfter(systemClock, 4_500) })).catch(
      (e: unknown) => e,
    )
    await other.query('ROLLBACK')
    expect(failure).toBeInstanceOf(SchemaError)
    expect((failure as Error).message).toMatch(
      /^functions\/outbox_claim\.sql: not applied to schema "s\d+" in the time given; last failure: .*lock timeout/,
    )
  })

  test('applies a function again when its text has changed, and keeps its rights', async () => {
    const schema = await installed()
    const before = await describeSchema(schema)
    await api.db.query(`UPDATE ${schema}.outbox_migration SET checksum = 'older' WHERE name = 'functions/outbox_renew.sql'`)
    await api.db.query(
      `CREATE OR REPLACE FUNCTION ${schema}.outbox_renew(p_token uuid, p_shards text, p_lease_seconds integer) RETURNS bigint
       LANGUAGE sql AS 'SELECT 1::bigint'`,
    )
    expect((await migrate(database, within(schema))).applied).toEqual(['functions/outbox_renew.sql'])
    expect(await describeSchema(schema)).toEqual(before)
  })
})

describe('a schema that is not what this release knows is refused, and left as it is', () => {
  test('a migration that was edited after it was applied', async () => {
    const schema = await installed()
    await api.db.query(`UPDATE ${schema}.outbox_migration SET checksum = repeat('e', 64) WHERE name = '0002-queue.sql'`)
    await expect(migrate(database, within(schema))).rejects.toThrow(
      new RegExp(
        `^migration 0002-queue\\.sql was applied to schema "${schema}" with another text \\(checksum eeeeeeeeeeee, this release has 0002-queue`,
      ),
    )
  })

  test('one of a newer release that needs a newer relay', async () => {
    const schema = await installed()
    await api.db.query(`INSERT INTO ${schema}.outbox_migration (name, version, checksum) VALUES ('0099-later.sql', 99, 'x')`)
    await api.db.query(`UPDATE ${schema}.outbox_meta SET schema_version = 99, min_relay_version = '9.1.0'`)
    await expect(migrate(database, within(schema))).rejects.toThrow(
      `schema "${schema}" belongs to a newer release: it needs 9.1.0 or later, this is ${relayVersion}; migrate with that one`,
    )
  })

  test('one with a table of the same name that is not ours', async () => {
    const schema = emptySchema()
    await api.db.query(`CREATE SCHEMA ${schema}`)
    await api.db.query(`CREATE TABLE ${schema}.outbox (id integer)`)
    await expect(migrate(database, within(schema))).rejects.toThrow(
      /^0003-event-log\.sql: could not be applied to schema "s\d+": .*relation "outbox" already exists.*choose another schema for the outbox/s,
    )
  })
})

describe('a schema of a newer release that still admits this one', () => {
  test('is left as it is, functions included, so that a deployment can be rolled back', async () => {
    const schema = await installed()
    await api.db.query(`INSERT INTO ${schema}.outbox_migration (name, version, checksum) VALUES ('0099-later.sql', 99, 'x')`)
    await api.db.query(`UPDATE ${schema}.outbox_meta SET schema_version = 99`)
    await api.db.query(`UPDATE ${schema}.outbox_migration SET checksum = 'later' WHERE name = 'functions/outbox_renew.sql'`)
    expect(await migrate(database, within(schema))).toEqual({ schema, schemaVersion: 99, applied: [], installation: null })
    const [record] = await api.db.query(
      `SELECT checksum FROM ${schema}.outbox_migration WHERE name = 'functions/outbox_renew.sql'`,
    )
    expect(record).toEqual({ checksum: 'later' })
  })
})

describe('an installation', () => {
  test('is recorded by the first migration that names it; another one is refused with both names, before it changes anything', async () => {
    const schema = await installed()
    expect(await migrate(database, within(schema))).toMatchObject({ installation: null })
    expect(await migrate(database, within(schema, { installation: 'orders' }))).toMatchObject({ installation: 'orders' })
    await api.db.query(`UPDATE ${schema}.outbox_migration SET checksum = 'older' WHERE name = 'functions/outbox_renew.sql'`)
    await expect(migrate(database, within(schema, { installation: 'billing' }))).rejects.toThrow(
      `the outbox in schema "${schema}" is served by installation "orders", so "billing" must not deliver from it`,
    )
    expect(await migrate(database, within(schema, { installation: 'orders' }))).toMatchObject({
      applied: ['functions/outbox_renew.sql'],
    })
  })

  test('takes an outbox over only from the one that it is told to, and the other then gets it back only in the same way', async () => {
    const schema = await installed()
    const as = (installation: string, takeOverFrom?: string) => migrate(database, within(schema, { installation, takeOverFrom }))
    await as('orders')
    await expect(as('billing', 'shop')).rejects.toThrow(
      `the outbox in schema "${schema}" is served by installation "orders", so "billing" must not deliver from it: ` +
        'to take it over, set takeOverFrom (--take-over-from) to "orders" (takeOverFrom is "shop"); else use another schema',
    )
    expect(await as('billing', 'orders')).toMatchObject({ installation: 'billing' })
    expect(await as('billing', 'orders')).toMatchObject({ installation: 'billing', applied: [] })
    await expect(as('orders')).rejects.toThrow(/is served by installation "billing", so "orders" must not deliver/)
    expect(await as('orders', 'billing')).toMatchObject({ installation: 'orders' })
  })

  test('of two that take an outbox over at once one has it, and the other is refused', async () => {
    const schema = await installed()
    await migrate(database, within(schema, { installation: 'orders' }))
    const answers = await Promise.allSettled(
      ['billing', 'shop'].map((installation) => migrate(database, within(schema, { installation, takeOverFrom: 'orders' }))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('is recorded, and takes over, also where a newer release left its schema', async () => {
    const schema = await installed()
    await api.db.query(`INSERT INTO ${schema}.outbox_migration (name, version, checksum) VALUES ('0099-later.sql', 99, 'x')`)
    await api.db.query(`UPDATE ${schema}.outbox_meta SET schema_version = 99`)
    expect(await migrate(database, within(schema, { installation: 'orders' }))).toMatchObject({ installation: 'orders' })
    const options = within(schema, { installation: 'billing', takeOverFrom: 'orders' })
    expect(await migrate(database, options)).toMatchObject({ installation: 'billing', schemaVersion: 99 })
  })

  test('of two that come at once one is recorded, and the other is refused', async () => {
    const schema = emptySchema()
    const answers = await Promise.allSettled(
      ['orders', 'billing'].map((installation) => migrate(database, within(schema, { installation }))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })
})

describe('the migrating user', () => {
  const login = async (attributes = '') => {
    const user = `migrator_${++schemas}`
    await api.db.query(`CREATE ROLE ${user} LOGIN ${attributes}`)
    return { user, as: databaseAs(api.secretFor(user)) }
  }

  test('need not be a superuser: rights on its schema are enough once the roles are there', async () => {
    const { user, as } = await login()
    const schema = emptySchema()
    await api.db.query(`CREATE SCHEMA ${schema} AUTHORIZATION ${user}`)
    expect((await migrate(as, within(schema))).applied).toEqual(files)
    expect(await deliverOne(schema)).toEqual([[true], 1])
  })

  test('is told which schema it may not use', async () => {
    const { as } = await login()
    const schema = emptySchema()
    await expect(migrate(as, within(schema))).rejects.toThrow(
      /^outbox_migration: could not be applied .*permission denied for database/,
    )
    await api.db.query(`CREATE SCHEMA ${schema}`)
    await expect(migrate(as, within(schema))).rejects.toThrow(
      /^outbox_migration: could not be applied .*permission denied for schema/,
    )
    await expect(migrateInbox(as, within(schema))).rejects.toThrow(/^inbox\.sql: .*schema "s\d+"/)
  })
})

describe('plain SQL, for teams that apply it by hand', () => {
  test('makes the same schema as the migrator, which then has nothing to do', async () => {
    const [byHand, byMigrator] = [emptySchema(), emptySchema()]
    await api.db.query(schemaSql({ schema: byHand }))
    await migrate(database, within(byMigrator))
    expect(await migrate(database, within(byHand))).toEqual({ schema: byHand, schemaVersion, applied: [], installation: null })
    expect(await describeSchema(byHand)).toEqual(await describeSchema(byMigrator))
  })

  test('makes the inbox', async () => {
    const schema = emptySchema()
    await api.db.query(inboxSql({ schema }))
    expect(await migrateInbox(database, within(schema))).toEqual({ schema, applied: [] })
  })
})

test('the inbox is created once, by two at the same time too', async () => {
  const schema = emptySchema()
  const reports = await Promise.all([migrateInbox(database, within(schema)), migrateInbox(database, within(schema))])
  expect(reports.some(({ applied }) => applied.includes('inbox.sql'))).toBe(true)
  expect(await api.db.query(`SELECT * FROM ${schema}.outbox_inbox`)).toEqual([])
})
