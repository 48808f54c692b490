import { describe, expect, test } from 'vitest'
import { add, count, drain, outboxDatabase, published, claim, settle, sqlStateOf } from '../support/outbox-sql.js'

const database = await outboxDatabase('roles')
const session = await database.open()

const roles = ['outbox_writer', 'outbox_relay', 'outbox_cleanup', 'outbox_monitor', 'outbox_operator'] as const
type Role = (typeof roles)[number]
const denied = '42501'

/** The SQLSTATE that a statement fails with when it is run with a role's rights, or `ok`; it leaves nothing. */
async function as(role: Role, sql: string): Promise<string> {
  await session.query('BEGIN')
  try {
    await session.query(`SET LOCAL ROLE ${role}`)
    return await sqlStateOf(session.query(sql))
  } finally {
    await session.query('ROLLBACK')
  }
}

describe('tables', () => {
  /** All that anybody but the owner may do to a table. */
  const allowed: Readonly<Record<string, readonly string[]>> = {
    outbox_writer: ['INSERT INTO outbox', 'SELECT count(*) FROM outbox'],
    outbox_relay: ['SELECT * FROM outbox_meta', 'SELECT count(*) FROM outbox_meta'],
    outbox_cleanup: ['SELECT * FROM outbox_meta', 'SELECT count(*) FROM outbox_meta'],
    outbox_monitor: ['SELECT * FROM outbox_meta', 'SELECT count(*) FROM outbox_meta'],
    outbox_operator: ['outbox_meta', 'outbox_status', 'outbox_circuit', 'outbox_audit'].flatMap((table) => [
      `SELECT * FROM ${table}`,
      `SELECT count(*) FROM ${table}`,
    ]),
  }
  const tables = ['', '_delivery', '_receipt', '_shard', '_meta', '_circuit', '_audit', '_migration', '_status'].map(
    (name) => `outbox${name}`,
  )

  test.each(roles)('%s may do to them what it needs, and nothing else', async (role) => {
    const may: string[] = []
    for (const table of tables) {
      for (const [what, rest] of [
        ['SELECT * FROM', ''],
        ['SELECT count(*) FROM', ''],
        ['INSERT INTO', ' DEFAULT VALUES'],
        ['DELETE FROM', ''],
        ['TRUNCATE', ''],
      ] as const) {
        // 55000 and 42809: a view cannot be written or truncated by anybody
        if (![denied, '55000', '42809'].includes(await as(role, `${what} ${table}${rest}`))) may.push(`${what} ${table}`)
      }
    }
    expect(may.sort()).toEqual([...allowed[role]!].sort())
    expect(await as(role, `SELECT nextval('outbox_delivery_seq')`)).toBe(denied)
    expect(await as(role, `UPDATE outbox SET payload = '1'`)).toBe(denied)
    expect(await as(role, 'UPDATE outbox_delivery SET attempts = 0')).toBe(denied)
    expect(await as(role, 'UPDATE outbox_shard SET handed = handed')).toBe(denied)
    expect(await as(role, `UPDATE outbox_circuit SET state = 'closed'`)).toBe(denied)
    expect(await as(role, `UPDATE outbox_receipt SET discarded = true`)).toBe(denied)
    expect(await as(role, `UPDATE outbox_audit SET reason = 'x'`)).toBe(denied)
    expect(await as(role, 'SELECT payload FROM outbox')).toBe(denied)
  })

  test('a writer inserts, gets the id back, and can skip a taken idempotency key', async () => {
    const sql = `INSERT INTO outbox (event_type, payload, ordering_key, idempotency_key) VALUES ('t', '1', 'k', 'i')
      ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING id`
    expect(await as('outbox_writer', sql)).toBe('ok')
  })
})

describe('functions', () => {
  const calls: Readonly<Record<string, string>> = {
    claim: `SELECT * FROM outbox_claim(gen_random_uuid(), 'x', 10, 1000, 1, 1, 1, NULL)`,
    settle: `SELECT * FROM outbox_settle(gen_random_uuid(), '[]', '[]', NULL)`,
    renew: `SELECT outbox_renew(gen_random_uuid(), '[1]', 1)`,
    start: `SELECT outbox_start(gen_random_uuid(), gen_random_uuid())`,
    chunks: `SELECT * FROM outbox_payload_chunks(gen_random_uuid(), 0, 1, 1)`,
    circuits: `SELECT outbox_circuits('{}', 1)`,
    fault: `SELECT * FROM outbox_circuit_fault(gen_random_uuid(), 'x', gen_random_uuid(), 1, 1, false, 'a', 'b')`,
    close: `SELECT * FROM outbox_circuit_close(NULL, 'x', NULL)`,
    states: 'SELECT outbox_circuit_states()',
    next: `SELECT outbox_circuit_next('x', NULL)`,
    report: 'SELECT * FROM outbox_circuit_report()',
    backlog: 'SELECT * FROM outbox_backlog()',
    cleanup: 'SELECT outbox_cleanup(1, 1)',
    expire: 'SELECT outbox_expire_failed(1, 1)',
    operate: `SELECT outbox_operate('redrive', '{}', 1, false, 'a', 'b')`,
    replay: `SELECT outbox_replay('{}', 1, false, 'a', 'b')`,
    repair: 'SELECT * FROM outbox_repair(NULL, 1, true, NULL, NULL, NULL)',
    doctor: 'SELECT * FROM outbox_doctor(1)',
    choose: `SELECT * FROM outbox_choose('redrive', '{}', 1)`,
    before: `SELECT outbox_done_before('a')`,
    requeue: `SELECT outbox_requeue('{}', '{}')`,
    free: `SELECT outbox_free_followers('{}')`,
    lock: `SELECT outbox_lock_keys('{a}')`,
  }
  const allowed: Readonly<Record<Role, readonly string[]>> = {
    outbox_writer: [],
    outbox_relay: ['claim', 'settle', 'renew', 'start', 'chunks', 'circuits', 'fault', 'close', 'backlog'],
    outbox_cleanup: ['cleanup', 'expire'],
    outbox_monitor: ['backlog'],
    outbox_operator: ['chunks', 'backlog', 'operate', 'replay', 'repair', 'doctor', 'choose', 'report'],
  }

  test.each(roles)('%s may call what it needs, and nothing else', async (role) => {
    const answers = await Object.entries(calls).reduce<Promise<Record<string, string>>>(
      async (before, [name, sql]) => ({ ...(await before), [name]: await as(role, sql) }),
      Promise.resolve({}),
    )
    expect(answers).toEqual(
      Object.fromEntries(Object.keys(calls).map((name) => [name, allowed[role].includes(name) ? 'ok' : denied])),
    )
  })
})

test('a user that is a member of the roles writes and delivers, and its temporary tables shadow nothing', async () => {
  const user = `user_of_${database.name}`
  await session.query(`CREATE ROLE ${user} LOGIN IN ROLE outbox_writer, outbox_relay`)
  try {
    const own = await database.open(user)
    await add(own, 3, { key: `'k'` })
    expect(await drain(own)).toHaveLength(3)
    await own.query('CREATE TEMP TABLE outbox_shard (shard smallint, lease_token uuid)')
    await own.query('CREATE TEMP TABLE outbox_delivery (event_id uuid)')
    await add(session, 1)
    const { token, rows } = await claim(own)
    expect(await settle(own, token, published(rows))).toMatchObject({ published: 1 })
    expect(await count(session, 'outbox_receipt')).toBe(4)
    await own.client.end()
  } finally {
    await session.query(`DROP OWNED BY ${user}`)
    await session.query(`DROP ROLE ${user}`)
  }
})
