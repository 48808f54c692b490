import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { relayVersion } from '../../src/core/version.js'
import type { LocalFunction } from '../../src/local/lambda/local-function.js'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { schemaVersion } from '../../src/store/check-schema.js'
import { watchClaimsBy, watchDoubleClaims } from '../support/double-claims.js'
import { handlerProcess, repeat, type Repeated } from '../support/handler-process.js'
import { buildLaterRelease, type LaterRelease } from '../support/later-release.js'
import { outOfOrder, readQueue, type Delivery } from '../support/queue-reader.js'

const keys = 100
/** Writers wait while so many events wait, so that a slow machine has no more to do than it can. */
const enoughWaiting = 200
const bound = { timeout: 120_000, interval: 100 }

describe('a later release that is deployed while relays of this one work', () => {
  let later: LaterRelease
  let stack: LocalStack
  let client: pg.Client
  const cleanUp: (() => Promise<void>)[] = []
  const handlers: LocalFunction[] = []
  beforeAll(async () => {
    later = await buildLaterRelease()
    cleanUp.push(() => later.remove())
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    cleanUp.push(() => stack.stop())
    client = await connected()
    cleanUp.push(() => client.end())
  }, 180_000)
  afterAll(async () => {
    await Promise.all(handlers.map((one) => one.stop()))
    for (const one of cleanUp.reverse()) await one()
  })

  async function connected(): Promise<pg.Client> {
    const one = new pg.Client({ connectionString: stack.description.databaseUrl })
    // the server is stopped under those that a failed test leaves behind
    one.on('error', () => undefined)
    await one.connect()
    return one
  }
  /** A handler of this release or of the later one; passes of a relay take 5 s. */
  function start(release: 'this' | 'later', handler: 'relay' | 'migrate'): LocalFunction {
    const { endpoint, queues } = stack.description
    const relay = {
      destinations: { queue: { type: 'sqs', queueUrl: queues['queue']! } },
      settings: { passSeconds: 5, idleWaitMs: 50 },
    } as const
    const started = handlerProcess({
      handler,
      endpoint,
      installation: 'local',
      ...(handler === 'relay' ? relay : {}),
      ...(release === 'later' ? { modulePath: later.handler(handler) } : {}),
    })
    handlers.push(started)
    return started
  }
  const count = async (sql: string) => (await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${sql}`)).rows[0]!.n
  const receipts = () => count('outbox_receipt')
  /** Each of these has published in an invocation that began after now. */
  async function allPublish(relays: readonly Repeated[]): Promise<void> {
    const now = performance.now()
    const published = ({ results }: Repeated) =>
      results.some(({ begunAtMs, result }) => begunAtMs > now && (result as { published: number } | null)!.published > 0)
    const errors = () => relays.flatMap(({ results }) => results.map(({ error }) => error)).filter((error) => error !== null)
    await expect.poll(() => (errors().length > 0 ? errors() : relays.every(published)), bound).toBe(true)
  }
  const refusal = async (handler: LocalFunction) => (await handler.invoke()).error?.message

  it('waits for the migration, which waits for its locks without holding anybody up; then both releases work side by side: nothing is lost, out of order or claimed twice', async () => {
    const doubleClaims = await watchDoubleClaims(client)
    const writing = startWriters()
    const { endpoint, queues } = stack.description
    const delivered = readQueue(endpoint, queues['queue']!, allOf(writing), 500_000)
    delivered.catch(() => undefined)
    const ours = [repeat(start('this', 'relay')), repeat(start('this', 'relay'))]
    await allPublish(ours)

    // the later relay, before its migration
    expect(await refusal(start('later', 'relay'))).toBe(
      `the outbox in schema "public" has schema version ${schemaVersion}, this release needs ${later.schemaVersion}: ` +
        'run the migration (aurora-outbox-relay migrate)',
    )

    // a transaction that is in the way of the new column, until the migration has tried twice
    const inTheWay = await connected()
    await inTheWay.query('BEGIN')
    await inTheWay.query('SELECT FROM outbox_delivery LIMIT 1')
    const migrated = start('later', 'migrate').invoke()
    const attempts = new Set<string>()
    const attempted = async () => {
      const waiting = `SELECT virtualtransaction AS id FROM pg_locks
        WHERE relation = 'outbox_delivery'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted`
      for (const { id } of (await client.query<{ id: string }>(waiting)).rows) attempts.add(id)
      return attempts.size
    }
    await expect.poll(attempted, { ...bound, interval: 20 }).toBe(1)
    const before = await receipts()
    await expect.poll(attempted, { ...bound, interval: 20 }).toBeGreaterThan(1)
    await expect.poll(receipts, bound).toBeGreaterThan(before)
    await inTheWay.query('COMMIT')
    await inTheWay.end()
    const { error, result } = await migrated
    expect(error).toBeNull()
    const applied = ['0006-taken-by.sql', 'functions/outbox_claim_2.sql', 'functions/outbox_settle.sql']
    expect(result).toMatchObject({
      schemaVersion: later.schemaVersion,
      applied: applied.map((name) => name.replace('0006', String(later.schemaVersion).padStart(4, '0'))),
    })
    await watchClaimsBy(client, 'outbox_claim_2')

    // this release's relays on the later schema; then with the later ones beside them
    await allPublish(ours)
    const theirs = [repeat(start('later', 'relay')), repeat(start('later', 'relay'))]
    await allPublish([...ours, ...theirs])
    // as when the deployment is rolled back
    const rolledBack = await start('this', 'migrate').invoke()
    expect(rolledBack.error).toBeNull()
    expect(rolledBack.result).toMatchObject({ schemaVersion: later.schemaVersion, applied: [] })
    await allPublish([...ours, ...theirs])

    // and when the roll-out is complete
    await Promise.all(ours.map((one) => one.finish()))
    await allPublish(theirs)
    const written = await writing.finish()
    const sound = { takenWhileLeased: 0, withoutLease: 0 }
    expect(await doubleClaims()).toMatchObject(sound)
    const deliveries = await delivered
    expect(new Set(deliveries.map(({ eventId }) => eventId)).size).toBe(written)
    expect(outOfOrder(deliveries)).toEqual([])
    await expect.poll(receipts, bound).toBe(written)
    expect(await count('outbox_delivery')).toBe(0)
    await Promise.all(theirs.map((one) => one.finish()))
    expect([...ours, ...theirs].flatMap(({ results }) => results.map(({ error }) => error)).filter(Boolean)).toEqual([])
    expect(await doubleClaims()).toMatchObject(sound)
    const { rows } = await client.query<{ claimed_by: string; n: number }>(
      'SELECT claimed_by, count(*)::int AS n FROM watched_claim GROUP BY claimed_by ORDER BY claimed_by',
    )
    expect(rows.map(({ claimed_by }) => claimed_by)).toEqual(['outbox_claim', 'outbox_claim_2'])
    console.log(`${written} events, ${deliveries.length - written} duplicates, claims ${JSON.stringify(rows)}`)
  }, 600_000)

  it('can end the support of older relays, which then refuse in one line, as does their migration', async () => {
    await client.query('UPDATE outbox_meta SET min_relay_version = $1', [later.version])
    await client.query(`INSERT INTO outbox (event_type, payload) VALUES ('Late', '{}')`)
    expect(await refusal(start('this', 'relay'))).toBe(
      `the outbox in schema "public" is too new: it needs relay ${later.version} or later, this is ${relayVersion}; deploy the newer release`,
    )
    expect(await refusal(start('this', 'migrate'))).toBe(
      `schema "public" belongs to a newer release: it needs ${later.version} or later, this is ${relayVersion}; migrate with that one`,
    )
    expect(await count('outbox_delivery')).toBe(1)
    expect((await start('later', 'relay').invoke()).result).toMatchObject({ published: 1 })
  })

  interface Writing {
    /** What is committed so far, and whether that is all. */
    readonly state: { written: number; complete: boolean }
    /** Ends the writing, and answers how many events were committed. */
    finish(): Promise<number>
  }

  /** Two writers with keys of their own; within a key the payload's number is commit order. */
  function startWriters(): Writing {
    const state = { written: 0, complete: false }
    let finishing = false
    const write = async (first: number) => {
      const writer = await connected()
      try {
        for (let n = 0; !finishing; n++) {
          const { rowCount } = await writer.query(
            `INSERT INTO outbox (event_type, payload, ordering_key)
             SELECT 'Moved', json_build_object('key', k, 'n', $1::int)::text, 'key-' || k FROM generate_series($2::int, $3::int, 2) k`,
            [n, first, keys - 1],
          )
          state.written += rowCount ?? 0
          const room = async () => (await writer.query('SELECT FROM outbox_delivery LIMIT $1', [enoughWaiting])).rowCount
          await expect.poll(async () => finishing || (await room())! < enoughWaiting, bound).toBe(true)
        }
      } finally {
        await writer.end()
      }
    }
    const ended = Promise.all([write(0), write(1)])
    ended.catch(() => undefined)
    const finish = async () => {
      finishing = true
      await ended
      state.complete = true
      return state.written
    }
    cleanUp.push(async () => {
      await finish().catch(() => undefined)
    })
    return { state, finish }
  }

  const allOf =
    ({ state }: Writing) =>
    (deliveries: readonly Delivery[]) =>
      state.complete &&
      deliveries.length >= state.written &&
      new Set(deliveries.map(({ eventId }) => eventId)).size >= state.written
})
