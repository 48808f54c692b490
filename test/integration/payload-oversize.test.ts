import { beforeEach, describe, expect, it } from 'vitest'
import { payloadOf } from '../support/payloads.js'
import { relayRig } from '../support/relay.js'
import { ScriptedPublisher } from '../support/scripted-publisher.js'

// one event of 40,000 bytes fits into an answer, two do not: a Data API that counts otherwise than we do
const rig = await relayRig({ limits: { maxResponseBytes: 60_000 } })
beforeEach(() => rig.reset())

describe('a claim whose answer is too large', () => {
  it('is given back by its token and halved down to one row; small events among the large ones arrive, and all in order per key', async () => {
    const queue = new ScriptedPublisher()
    await rig.api.db.query(
      `INSERT INTO outbox (event_type, payload, ordering_key)
       SELECT CASE WHEN i % 3 = 0 THEN 'Large' ELSE 'Small' END, CASE WHEN i % 3 = 0 THEN $1 ELSE '{"i":' || i || '}' END,
              CASE WHEN i % 2 = 0 THEN 'key-' || i % 5 END
         FROM generate_series(1, 60) i`,
      [payloadOf(40_000, 'four-byte')],
    )
    const sizes: unknown[] = []
    const { telemetry, totals } = await rig.pass({
      publishers: { queue },
      store: {
        ...rig.store,
        claim: (request, options) => {
          sizes.push(request.maxRows)
          return rig.store.claim(request, options)
        },
      },
    })
    expect(telemetry.sum('OversizeClaims')).toBeGreaterThan(0)
    expect(sizes).toContain(1)
    expect(totals).toMatchObject({ published: 60, leaseLost: 0 })
    expect(new Set(queue.acceptedIds()).size).toBe(60)
    expect(queue.accepted).toHaveLength(60)
    expect(queue.order.violations).toEqual([])
    // nothing stays leased by a claim that nobody could read
    expect(await rig.api.db.query('SELECT 1 FROM outbox_shard WHERE lease_token IS NOT NULL')).toEqual([])
  })

  it('asks for more again once answers fit', async () => {
    const queue = new ScriptedPublisher()
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) SELECT 'Large', $1 FROM generate_series(1, 20)`, [
      payloadOf(40_000, 'ascii'),
    ])
    await rig.write(`SELECT 'Small', '{}', NULL, NULL FROM generate_series(1, 400) i`)
    const { totals } = await rig.pass({ publishers: { queue } })
    expect(totals.published).toBe(420)
    // row by row they would be 420
    expect(totals.claims).toBeLessThan(150)
  })
})
