// Claims, and the exact age of the backlog, with 1,000,000 events pending and as many published, against 1,000 pending and none
// published: two databases of one server, taking turns. Whatever is claimed is published, and as much is written again.
//
//   npx tsx bench/backlog.ts [--rows 1000000] [--small 1000] [--claims 1000] [--json]
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { startPostgres } from '../src/local/postgres/launcher.js'
import { schemaSql } from '../src/store/postgres/schema-sql.js'
import { round, spread } from './support/figures.js'
import { runBench, type BenchTools } from './support/run.js'

/** As the relay asks by default. */
const CLAIM = `SELECT * FROM outbox_claim(CAST($1 AS uuid), 'bench', 500, 700000, 50, 8, 30, NULL)`
const SETTLE = 'SELECT published FROM outbox_settle(CAST($1 AS uuid), $2, NULL, NULL)'
/** Every so many claims the age is measured too. */
const CLAIMS_PER_AGE = 20
/** Before anything counts: plans are made, caches are warm. */
const WARM_UP_CLAIMS = 20
const FILL_ROWS = 100_000

/** Events as a service writes them: half of them with one of 10,000 keys. */
const EVENTS = `SELECT 'OrderCreated', '{"x":"' || repeat('x', $2::int - 8) || '"}',
                       CASE WHEN i % 2 = 0 THEN 'key-' || (random() * 10000)::int END
                  FROM generate_series(1, $1::int) i`

interface Side {
  readonly name: string
  readonly client: pg.Client
  readonly claims: number[]
  readonly settles: number[]
  readonly ages: number[]
}

await runBench(
  'backlog',
  {
    rows: { default: 1_000_000, min: 1000, doc: 'pending, and published, on the one side' },
    small: { default: 1000, min: 500, doc: 'pending on the other side' },
    claims: { default: 1000, min: 20, doc: 'claims on each side' },
    bytes: { default: 200, min: 20, doc: 'payload bytes' },
  },
  async ({ rows, small, claims, bytes }, tools) => {
    const postgres = await startPostgres()
    tools.atEnd(() => postgres.stop())
    const few = await open(postgres.url.bind(postgres), `${small} pending`, 'few', tools)
    const many = await open(postgres.url.bind(postgres), `${rows} pending, ${rows} published`, 'many', tools)
    tools.say(`writing ${2 * rows} events`)
    await publishedBefore(many.client, rows, bytes)
    for (let done = 0; done < rows; done += FILL_ROWS) await write(many.client, Math.min(FILL_ROWS, rows - done), bytes)
    await write(few.client, small, bytes)
    for (const { client } of [few, many]) await client.query('VACUUM (ANALYZE)')
    await few.client.query('CHECKPOINT')

    tools.say(`${claims} claims on each side`)
    for (let turn = -WARM_UP_CLAIMS; turn < claims; turn++) {
      for (const side of turn % 2 === 0 ? [few, many] : [many, few]) {
        await claimAndPublish(side, bytes, turn >= 0)
        if (turn >= 0 && turn % CLAIMS_PER_AGE === 0) await measureAge(side)
      }
    }

    const claimOf = (side: Side) => spread(side.claims, 1)
    const ratio = (share: 'p50' | 'p99') => round(claimOf(many)[share] / claimOf(few)[share], 2)
    const table = (values: (side: Side) => readonly number[]) =>
      [few, many].map((side) => ({ backlog: side.name, ...spread(values(side), 1), count: values(side).length }))
    return {
      tables: {
        'claim of 500, ms': table(({ claims: values }) => values),
        'settle of 500, ms': table(({ settles }) => settles),
        'outbox_backlog(), ms': table(({ ages }) => ages),
        'claim, many against few': [{ 'p50 ratio': ratio('p50'), 'p99 ratio': ratio('p99') }],
      },
      limits: [
        { what: 'claim p99, many against few', value: ratio('p99'), allowed: 2 },
        { what: 'exact backlog age, ms, the slowest', value: spread(many.ages, 1).max, allowed: 999 },
      ],
    }
  },
)

async function open(url: (database: string) => string, name: string, database: string, tools: BenchTools): Promise<Side> {
  const server = new pg.Client({ connectionString: url('postgres') })
  await server.connect()
  await server.query(`CREATE DATABASE ${database}`)
  await server.end()
  const client = new pg.Client({ connectionString: url(database) })
  client.on('error', () => undefined)
  await client.connect()
  tools.atEnd(() => client.end())
  await client.query(schemaSql({ schema: 'public' }))
  return { name, client, claims: [], settles: [], ages: [] }
}

async function write(client: pg.Client, count: number, bytes: number): Promise<void> {
  await client.query({
    name: 'write',
    text: `INSERT INTO outbox (event_type, payload, ordering_key) ${EVENTS}`,
    values: [count, bytes],
  })
}

/** Straight into the log and the receipts, as they are after they have been through the queue. */
async function publishedBefore(client: pg.Client, count: number, bytes: number): Promise<void> {
  await client.query('SET session_replication_role = replica')
  await client.query(
    `WITH event AS (INSERT INTO outbox (event_type, payload, ordering_key) ${EVENTS} RETURNING id)
     INSERT INTO outbox_receipt (event_id, attempts, replays, destination, broker_message_id)
     SELECT id, 1, 0, 'queue', CAST(gen_random_uuid() AS text) FROM event`,
    [count, bytes],
  )
  await client.query('SET session_replication_role = origin')
}

async function claimAndPublish({ client, claims, settles }: Side, bytes: number, counts: boolean): Promise<void> {
  const token = randomUUID()
  const [claimMs, claimed] = await timed(() =>
    client.query<{ readonly id: string; readonly seq: string }>({ name: 'claim', text: CLAIM, values: [token] }),
  )
  const outcomes = claimed.rows.map(({ id, seq }) => ({ id, destination: 'queue', messageId: `m-${seq}` }))
  const [settleMs, { rows }] = await timed(() =>
    client.query<{ readonly published: string }>({ name: 'settle', text: SETTLE, values: [token, JSON.stringify(outcomes)] }),
  )
  if (Number(rows[0]?.published) !== outcomes.length) throw new Error('a settlement did not record all')
  await write(client, outcomes.length, bytes)
  if (!counts) return
  claims.push(claimMs)
  settles.push(settleMs)
}

async function measureAge({ client, ages }: Side): Promise<void> {
  const [ms] = await timed(() => client.query({ name: 'age', text: 'SELECT * FROM outbox_backlog()' }))
  ages.push(ms)
}

async function timed<Value>(action: () => Promise<Value>): Promise<readonly [number, Value]> {
  const began = performance.now()
  const value = await action()
  return [performance.now() - began, value]
}
