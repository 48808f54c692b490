import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { seededRandom } from '../../../src/local/faults/random.js'
import {
  cleanup,
  count,
  eventually,
  outboxDatabase,
  queued,
  replay,
  soundState,
  stateOf,
  type Session,
} from '../../support/outbox-sql.js'
import { operator } from './operator.js'
import { relay } from './relay.js'
import { SoakRun } from './soak-run.js'
import { write } from './writer.js'

const seed = Number(process.env['OUTBOX_SEED'] ?? Date.now() % 1_000_000)
const events = Number(process.env['OUTBOX_SOAK_EVENTS'] ?? 12_000)
const chaosSeconds = Number(process.env['OUTBOX_SOAK_SECONDS'] ?? 15)

const database = await outboxDatabase('soak')
const session = await database.open()

test(
  `8 relays, writers and operators with cut connections, dead and late relays: nothing lost, nothing out of order (OUTBOX_SEED=${seed})`,
  async () => {
    console.log(`soak: OUTBOX_SEED=${seed} OUTBOX_SOAK_EVENTS=${events} OUTBOX_SOAK_SECONDS=${chaosSeconds}`)
    await recordQueueing(session)
    const run = new SoakRun(database, seededRandom(seed), events, chaosSeconds)
    const writers = Array.from({ length: 3 }, () => write(run, Math.floor(events / 3)))
    const others = [...Array.from({ length: 8 }, () => relay(run)), operator(run), operator(run)]
    await pause(chaosSeconds * 1000)
    run.chaos = false
    await Promise.all(writers)
    await eventually(async () => {
      if ((await queued(session)) > 0) return false
      await pause(500) // a relay that was paused may still bring one back
      return (await queued(session)) === 0
    }, 90_000)
    const ledger = await readLedger(session)
    await cleanUpBesideReplays(run)
    run.stopped = true
    await Promise.all(others)
    await run.close()
    console.log(
      JSON.stringify({ seed, committed: run.committed.size, sent: run.sendings.length, ...run.counts, errors: run.errors }),
    )

    expect(outOfOrder(run, ledger.queue)).toEqual([])
    // every committed event was sent, or discarded by an operator; what was rolled back was never queued
    const sent = new Set(run.sendings.map(({ id }) => id))
    expect(
      [...run.committed].filter((id) => ledger.receipts.get(id) !== true && !(ledger.receipts.has(id) && sent.has(id))),
    ).toEqual([])
    expect(ledger.queue.filter(({ id }) => !run.committed.has(id))).toEqual([])
    expect([...ledger.receipts.values()].filter(Boolean)).toHaveLength(run.counts['discard'] ?? 0)

    expect(await stateOf(session)).toEqual(soundState)
    expect([await count(session, 'outbox'), await count(session, 'outbox_receipt')]).toEqual([0, 0])
    // writers that touch several keys in opposite order deadlock, and so do replay and repair, which take the same locks
    expect(Object.keys(run.errors).filter((error) => !/^(writer|replay|repair) 40P01$/.test(error))).toEqual([])
    for (const happened of ['disconnects', 'deaths', 'repeats', 'reclaimed', 'late settlements', 'failed', 'held', 'freed']) {
      expect([happened, run.counts[happened] ?? 0]).toEqual([happened, expect.toSatisfy((times: number) => times > 0)])
    }
  },
  (chaosSeconds + 150) * 1000,
)

/** Keeps in which order events came into the queue; a replay does not come in anew. */
async function recordQueueing(on: Session): Promise<void> {
  await on.query(
    `CREATE TABLE queueing (event_id uuid PRIMARY KEY, seq bigint, ordering_key text);
     CREATE FUNCTION queueing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO queueing SELECT event_id, seq, ordering_key FROM queued ON CONFLICT DO NOTHING; RETURN NULL; END $$;
     CREATE TRIGGER queueing AFTER INSERT ON outbox_delivery REFERENCING NEW TABLE AS queued
       FOR EACH STATEMENT EXECUTE FUNCTION queueing()`,
  )
}

interface Queued {
  readonly id: string
  readonly key: string | null
}

async function readLedger(from: Session) {
  const receipts = await from.query<{ id: string; discarded: boolean }>(
    'SELECT CAST(event_id AS text) AS id, discarded FROM outbox_receipt',
  )
  const queue = await from.query<{ id: string; key: string | null }>(
    'SELECT CAST(event_id AS text) AS id, ordering_key AS key FROM queueing ORDER BY seq',
  )
  return { queue, receipts: new Map(receipts.map(({ id, discarded }) => [id, discarded])) }
}

/** Keyed events whose first sending came before that of an earlier event of their key, which nobody had let pass. */
function outOfOrder(run: SoakRun, queue: readonly Queued[]): Queued[] {
  const first = new Map<string, number>()
  for (const { id, at } of run.sendings) if (!first.has(id)) first.set(id, at)
  const bar = new Map<string, number>()
  return queue.filter(({ id, key }) => {
    if (key === null || run.scheduled.has(id)) return false
    const [sent, before] = [first.get(id) ?? Infinity, bar.get(key) ?? 0]
    const through = Math.min(sent, run.passed.get(id) ?? Infinity)
    if (through !== Infinity && through > before) bar.set(key, through)
    return sent < before
  })
}

async function cleanUpBesideReplays(run: SoakRun): Promise<void> {
  const [cleaner, replayer] = [await run.actor(), await run.actor()]
  for (let round = 0; round < 30; round++) {
    const delivered = await session.query<{ id: string }>(
      'SELECT CAST(event_id AS text) AS id FROM outbox_receipt WHERE NOT discarded ORDER BY random() LIMIT 100',
    )
    await Promise.all([
      run.call(replayer, 'replay', (on) => replay(on, { ids: delivered.map(({ id }) => id) })),
      run.call(cleaner, 'cleanup', (on) => cleanup(on, 2 - (round % 3), 300)),
    ])
    if (round % 10 === 0) expect(await stateOf(session)).toEqual(soundState)
  }
  await eventually(async () => {
    await run.call(cleaner, 'cleanup', (on) => cleanup(on, 0, 1000))
    return (await queued(session)) === 0 && (await count(session, 'outbox')) === 0
  }, 30_000)
}
