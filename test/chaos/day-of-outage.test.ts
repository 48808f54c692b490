import { expect, it, vi } from 'vitest'
import { relayRig } from '../support/relay.js'
import { acceptAll, fault, ScriptedPublisher } from '../support/scripted-publisher.js'

// A day of outage with its clock compressed: cool-downs end at 60 ms in place of a minute, so 24 h of probes take 86 s. The
// reference run has 200,000 events and 86 s: OUTBOX_OUTAGE_EVENTS=200000 OUTBOX_OUTAGE_SECONDS=86
const events = Number(process.env['OUTBOX_OUTAGE_EVENTS'] ?? 4000)
const seconds = Number(process.env['OUTBOX_OUTAGE_SECONDS'] ?? 10)
const keys = Math.min(10_000, events / 4)

const rig = await relayRig()
await rig.api.db.query(`
  CREATE SEQUENCE updates;
  CREATE FUNCTION count_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('updates'); RETURN NULL; END $$;
  CREATE TRIGGER count_update AFTER UPDATE ON outbox_delivery FOR EACH ROW EXECUTE FUNCTION count_update()`)

it(
  `a day of outage with ${events} events waiting charges none, fails none, and ends in order`,
  { timeout: 1_200_000 },
  async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = () => fault()
    const settings = {
      profile: 'continuous',
      releasePerSecond: 100_000,
      policy: { maxAttempts: 10, baseMs: 10, capMs: 60 },
    } as const
    let over = false
    const relays = [0, 1].map(async () => {
      while (!over) await rig.pass({ publishers: { a, b }, settings, passMs: 5000 })
    })
    const begunMs = Date.now()
    for (let from = 0; from < events; from += 2000) {
      await rig.write(`SELECT 'Made', '{"i": ' || i || '}', 'key-' || i % ${keys}, 'a'
                       FROM generate_series(${from}, ${Math.min(events, from + 2000) - 1}) i`)
    }
    let others = 0
    // a busy machine tries the destination less often
    while (Date.now() - begunMs < seconds * 1000 || a.requests.length <= 20) {
      await rig.write(`SELECT 'Made', '{}', NULL, 'b' FROM generate_series(1, 20) i`)
      others += 20
      await vi.waitFor(() => expect(b.accepted).toHaveLength(others), { timeout: 60_000 })
    }
    const probes = a.requests.length
    expect(a.accepted).toEqual([])
    expect(await rig.api.db.query(`SELECT 1 FROM outbox_delivery WHERE attempts > 0 OR lane = 3 LIMIT 1`)).toEqual([])

    a.script = acceptAll
    const drainedFromMs = Date.now()
    await vi.waitFor(async () => expect(await rig.api.db.query('SELECT 1 FROM outbox_delivery LIMIT 1')).toEqual([]), {
      timeout: 900_000,
      interval: 500,
    })
    over = true
    await Promise.all(relays)
    const [{ updates } = { updates: 0 }] = await rig.api.db.query<{ updates: number }>(
      'SELECT CAST(last_value AS integer) AS updates FROM updates',
    )
    console.log(JSON.stringify({ events, seconds, probes, updates, others, drainSeconds: (Date.now() - drainedFromMs) / 1000 }))
    expect(a.order.violations).toEqual([])
    expect(new Set(a.acceptedIds()).size).toBe(events)
    expect(await rig.api.db.query(`SELECT 1 FROM outbox_receipt WHERE attempts > 1 OR discarded LIMIT 1`)).toEqual([])
    // aside and back; a probe twice more
    expect(updates).toBeLessThanOrEqual(2 * events + 2 * probes)
  },
)
