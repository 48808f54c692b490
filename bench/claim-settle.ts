// Claim and settle against the layout that articles and most libraries use (design A: one table with a status column, SKIP
// LOCKED, one UPDATE to claim and one to publish), on the same server, taking turns.
//
//   npx tsx bench/claim-settle.ts [events, default 50000] [relays, default 1] [rounds, default 3]
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { startPostgres } from '../src/local/postgres/launcher.js'
import { schemaSql } from '../src/store/postgres/schema-sql.js'

const [events = 50_000, relays = 1, rounds = 3] = process.argv.slice(2).map(Number)
const batch = 500

interface Design {
  readonly database: string
  readonly schema: string
  /** Claims a batch; answers how many, and how to publish them. */
  claim(client: pg.Client): Promise<{ readonly events: number; publish(): Promise<unknown> }>
}

const ours: Design = {
  database: 'ours',
  schema: schemaSql({ schema: 'public' }),
  claim: async (client) => {
    const token = randomUUID()
    const { rows } = await client.query<{ id: string; seq: string }>({
      name: 'claim',
      text: `SELECT * FROM outbox_claim(CAST($1 AS uuid), 'bench', ${batch}, 700000, ${batch}, 16, 30, NULL)`,
      values: [token],
    })
    const published = rows.map(({ id, seq }) => ({ id, destination: 'q', messageId: `m-${seq}` }))
    const settle = 'SELECT * FROM outbox_settle(CAST($1 AS uuid), $2, NULL, NULL)'
    return {
      events: rows.length,
      publish: () => client.query({ name: 'settle', text: settle, values: [token, JSON.stringify(published)] }),
    }
  },
}

const designA: Design = {
  database: 'design_a',
  schema: `CREATE TABLE outbox (id bigserial PRIMARY KEY, event_type text, payload text, ordering_key text, status text DEFAULT 'pending',
      attempts int DEFAULT 0, available_at timestamptz DEFAULT now(), locked_until timestamptz, published_at timestamptz,
      created_at timestamptz DEFAULT now());
    CREATE INDEX ON outbox (available_at, id) WHERE status IN ('pending', 'claimed')`,
  claim: async (client) => {
    const { rows } = await client.query<{ id: string }>({
      name: 'claim',
      text: `UPDATE outbox o SET status = 'claimed', locked_until = now() + interval '30 seconds'
        FROM (SELECT id FROM outbox WHERE status = 'pending' AND available_at <= now() ORDER BY available_at, id
               LIMIT ${batch} FOR UPDATE SKIP LOCKED) x
        WHERE o.id = x.id RETURNING o.id, o.event_type, o.payload, o.ordering_key, o.attempts`,
    })
    const publish = `UPDATE outbox SET status = 'published', published_at = now(), attempts = attempts + 1 WHERE id = ANY ($1)`
    return {
      events: rows.length,
      publish: () => client.query({ name: 'publish', text: publish, values: [rows.map(({ id }) => id)] }),
    }
  },
}

const postgres = await startPostgres()
try {
  const figures = new Map<Design, number[]>([
    [ours, []],
    [designA, []],
  ])
  for (const { database, schema } of figures.keys()) {
    await withClient('postgres', (client) => client.query(`CREATE DATABASE ${database}`))
    await withClient(database, (client) => client.query(schema))
  }
  for (let round = 0; round < rounds; round++) {
    const turn = [...figures.keys()]
    if (round % 2 === 1) turn.reverse()
    for (const design of turn) figures.get(design)!.push(await run(design))
  }
  const [a, b] = [median(figures.get(ours)!), median(figures.get(designA)!)]
  console.log(`ours / design A: ${(a / b).toFixed(2)} (events a second, medians of ${rounds} rounds, ${relays} relays)`)
} finally {
  await postgres.stop()
}

/** Fills the table, then drains it; answers events a second. */
async function run(design: Design): Promise<number> {
  return withClient(design.database, async (observer) => {
    await observer.query(
      `INSERT INTO outbox (event_type, payload, ordering_key)
       SELECT 'k', json_build_object('i', i, 'x', rpad('', 470, 'abc')), 'k' || (i % 10000) FROM generate_series(1, ${events}) i`,
    )
    await observer.query('ANALYZE')
    const position = async () => (await observer.query<{ at: string }>('SELECT pg_current_wal_lsn() AS at')).rows[0]!.at
    const before = await position()
    const claims: number[] = []
    const settles: number[] = []
    let total = 0
    const began = performance.now()
    await Promise.all(
      Array.from({ length: relays }, () =>
        withClient(design.database, async (client) => {
          while (total < events) {
            const claimBegan = performance.now()
            const claimed = await design.claim(client)
            claims.push(performance.now() - claimBegan)
            if (claimed.events === 0) {
              await pause(2) // others are serving it
              continue
            }
            const publishBegan = performance.now()
            await claimed.publish()
            settles.push(performance.now() - publishBegan)
            total += claimed.events
          }
        }),
      ),
    )
    const rate = (total / (performance.now() - began)) * 1000
    const wal = 'SELECT pg_wal_lsn_diff($1, $2) AS bytes'
    const { rows } = await observer.query<{ bytes: string }>(wal, [await position(), before])
    console.log(
      `${design.database.padEnd(8)} ${Math.round(rate)} events/s, claim p50/p99 ${span(claims)} ms, settle p50/p99 ${span(settles)} ms, ` +
        `${Math.round(Number(rows[0]!.bytes) / total)} bytes of WAL an event`,
    )
    return rate
  })
}

async function withClient<Value>(database: string, use: (client: pg.Client) => Promise<Value>): Promise<Value> {
  const client = new pg.Client({ connectionString: postgres.url(database) })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

function at(values: readonly number[], share: number): number {
  const sorted = [...values].sort((x, y) => x - y)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function median(values: readonly number[]): number {
  return at(values, 0.5)
}

function span(values: readonly number[]): string {
  return `${at(values, 0.5).toFixed(1)}/${at(values, 0.99).toFixed(1)}`
}
