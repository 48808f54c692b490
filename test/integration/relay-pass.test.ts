import { beforeEach, describe, expect, it } from 'vitest'
import type { OutboundEvent } from '../../src/core/event.js'
import { acceptAll, fault, perEntry, ScriptedPublisher } from '../support/scripted-publisher.js'
import { relayRig } from '../support/relay.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const refusedTransient = { kind: 'refused', fault: 'transient', code: 'InternalError', reason: 'try again' } as const
const refusedForGood = { kind: 'refused', fault: 'event', code: 'InvalidMessageContents', reason: 'a character' } as const
const number = (event: OutboundEvent) => (JSON.parse(event.payload) as { i: number }).i

describe('a relay pass', () => {
  it('delivers every committed event exactly as written, and records when, where and under which message id', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || ', "big":9007199254740993}', NULL, NULL FROM generate_series(1, 700) i`)
    const { totals, telemetry } = await rig.pass({ publishers: { queue } })

    expect(totals).toMatchObject({ claimed: 700, published: 700, retried: 0, failed: 0, leaseLost: 0 })
    expect(new Set(queue.acceptedIds()).size).toBe(700)
    expect(queue.accepted.every(({ payload }) => /^\{"i": \d+, "big":9007199254740993\}$/.test(payload))).toBe(true)
    const receipts = await rig.api.db.query(
      `SELECT count(*)::int AS n FROM outbox_receipt WHERE destination = 'queue' AND broker_message_id LIKE 'm-%' AND attempts = 1`,
    )
    expect(receipts).toEqual([{ n: 700 }])
    expect(telemetry.sum('Published', 'queue')).toBe(700)
  })

  it('never sees what was rolled back, and delivers what commits while it runs', async () => {
    const queue = new ScriptedPublisher()
    const late = await rig.api.db.connect()
    await late.query('BEGIN')
    await late.query(`INSERT INTO outbox (event_type, payload) VALUES ('Late', '{"i": 1}')`)
    const undone = await rig.api.db.connect()
    await undone.query('BEGIN')
    await undone.query(`INSERT INTO outbox (event_type, payload) VALUES ('Undone', '{"i": 2}')`)
    await rig.write(`SELECT 'Later', '{"i": 3}', NULL, NULL`)
    await rig.pass({ publishers: { queue } })
    expect(queue.accepted.map(({ eventType }) => eventType)).toEqual(['Later'])

    // its id and seq are lower than what is delivered already: no watermark may hide it
    await undone.query('ROLLBACK')
    await late.query('COMMIT')
    await rig.pass({ publishers: { queue } })
    expect(queue.accepted.map(({ eventType }) => eventType)).toEqual(['Later', 'Late'])
  })

  it('claims the next batch while it publishes the last one', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', NULL, NULL FROM generate_series(1, 200) i`)
    queue.script = async (events, request) => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      return acceptAll(events, request)
    }
    /** How many were accepted when each claim brought events. */
    const accepted: number[] = []
    const store: typeof rig.store = {
      ...rig.store,
      claim: async (options, call) => {
        const answer = await rig.store.claim(options, call)
        if (answer.events.length > 0) accepted.push(queue.accepted.length)
        return answer
      },
    }
    await rig.pass({ publishers: { queue }, store, settings: { claimRows: 60, requestsInFlight: 1 } })
    expect(queue.accepted).toHaveLength(200)
    // the first has five requests at least
    expect(accepted[0]).toBe(0)
    expect(accepted[1]).toBeLessThan(50)
  })

  it('leases no more shards than the setting says in one claim, so that others find some', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', NULL, NULL FROM generate_series(1, 160) i`)
    const shards: number[] = []
    const store: typeof rig.store = {
      ...rig.store,
      claim: async (options, call) => {
        const answer = await rig.store.claim(options, call)
        shards.push(new Set(answer.events.map(({ shard }) => shard)).size)
        return answer
      },
    }
    await rig.pass({ publishers: { queue }, store, settings: { maxShards: 5 } })
    expect(queue.accepted).toHaveLength(160)
    expect(Math.max(...shards)).toBe(5)
  })

  it('costs two calls a batch: one claim, one settlement', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', NULL, NULL FROM generate_series(1, 400) i`)
    rig.api.requests.length = 0
    // small batches: one that takes more than a second, on a busy machine, settles in parts
    await rig.pass({ publishers: { queue }, settings: { claimRows: 100 } })
    const tokens = (name: string) =>
      rig.api.requests
        .filter(({ sql }) => sql?.includes(name))
        .map(({ body }) => JSON.stringify(body.parameters).match(/[0-9a-f-]{36}/)?.[0])
    const settled = tokens('outbox_settle')
    expect(new Set(settled).size).toBe(settled.length)
    expect(settled.length).toBeLessThanOrEqual(6)
    expect(tokens('outbox_claim').filter((token) => settled.includes(token))).toHaveLength(settled.length)
  })

  it('settles once what several claims brought, when the bytes of big events cut them short', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"x":"' || repeat('x', 20000) || '"}', NULL, NULL FROM generate_series(1, 200) i`)
    // a batch keeps to the shards of its first claim: here is one that has them all
    await rig.api.db.query('UPDATE outbox_delivery SET shard = 3')
    rig.api.requests.length = 0
    const { totals } = await rig.pass({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(200)
    // 33 fit into an answer
    expect(totals.claims).toBeGreaterThanOrEqual(7)
    const settlements = rig.api.requests.filter(({ sql }) => sql?.includes('outbox_settle')).length
    // a second one only if the first second was over
    expect(settlements).toBeLessThanOrEqual(2)
    expect(totals.published).toBe(200)
  })

  it('publishes the events of a key one at a time, each after the one before is confirmed, across destinations', async () => {
    const a = new ScriptedPublisher()
    const b = new ScriptedPublisher(a.order)
    await rig.write(
      `SELECT 'Made', '{"i": ' || i || '}', 'key-' || i % 7, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 300) i`,
    )
    a.script = perEntry((event, request) => (request % 5 === 0 && number(event) % 3 === 0 ? refusedTransient : undefined))
    await rig.drain({ publishers: { a, b } })

    expect(a.order.violations).toEqual([])
    for (const request of [...a.requests, ...b.requests]) {
      const keys = request.map(({ orderingKey }) => orderingKey)
      expect(new Set(keys).size).toBe(keys.length)
    }
    expect(a.accepted.length + b.accepted.length).toBe(300)
  })

  it('records as published only what the destination confirmed, entry by entry', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', NULL, NULL FROM generate_series(1, 10) i`)
    queue.script = perEntry((event) =>
      number(event) === 3 ? refusedTransient : number(event) === 4 ? { kind: 'missing' } : undefined,
    )
    const { telemetry } = await rig.pass({
      publishers: { queue },
      settings: { policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } },
    })

    const pending = await rig.status(`status = 'pending'`)
    expect(pending.map(({ attempts, last_error_code }) => [attempts, last_error_code]).sort()).toEqual([
      [1, 'InternalError'],
      [1, 'UnknownEntry'],
    ])
    expect((await rig.status(`status = 'published'`)).length).toBe(8)
    expect(telemetry.sum('UnknownEntries', 'queue')).toBe(1)
    expect(telemetry.logged('unknown-entry')).toHaveLength(1)
  })

  it('charges nothing when a request fails whole, and delivers everything once the destination is back', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', 'key-' || i % 5, NULL FROM generate_series(1, 100) i`)
    queue.script = () => fault('ThrottlingException')
    const { telemetry } = await rig.pass({ publishers: { queue }, passMs: 400, settings: { profile: 'continuous' } })
    expect(telemetry.sum('DestinationFaults', 'queue')).toBeGreaterThan(0)
    expect(telemetry.logged('destination-fault')[0]).toMatchObject({ destination: 'queue', errorCode: 'ThrottlingException' })
    const down = await rig.status()
    expect(down.every(({ status, attempts }) => status === 'pending' && attempts === 0)).toBe(true)

    queue.script = acceptAll
    await rig.drain({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(100)
    expect(queue.order.violations).toEqual([])
  })

  it('fails an event at once that can never be sent, says why, and holds its key back until an operator acts', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', CASE WHEN i < 4 THEN 'k' END, NULL FROM generate_series(1, 6) i`)
    queue.script = perEntry((event) => (number(event) === 2 ? refusedForGood : undefined))
    const { telemetry, totals } = await rig.pass({ publishers: { queue } })
    await rig.pass({ publishers: { queue } })

    const byNumber = await rig.api.db.query<{ i: number; status: string; detail: string | null; last_error: string | null }>(
      `SELECT CAST(o.payload AS json) ->> 'i' AS i, s.status, s.detail, s.last_error FROM outbox_status s JOIN outbox o USING (id) ORDER BY s.seq, 1`,
    )
    expect(Object.fromEntries(byNumber.map(({ i, status, detail }) => [i, [status, detail]]))).toMatchObject({
      1: ['published', null],
      2: ['failed', 'blocks its key'],
      3: ['pending', 'held by key'],
      4: ['published', null],
      5: ['published', null],
      6: ['published', null],
    })
    expect(totals.failed).toBe(1)
    expect(telemetry.logged('event-failed')).toMatchObject([
      { errorCode: 'InvalidMessageContents', error: 'a character', blocksKey: true },
    ])
  })

  it('lets a key go on behind a failed event where its route says skip', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', 'k', NULL FROM generate_series(1, 3) i`)
    queue.script = perEntry((event) => (number(event) === 2 ? refusedForGood : undefined))
    await rig.drain({ publishers: { queue }, routes: [{ eventType: 'Made', to: 'queue', onFailure: 'skip' }] })
    expect(queue.accepted.map(number)).toEqual([1, 3])
  })

  it('fails an event whose charged attempts are used up, and delivers its neighbours', async () => {
    const queue = new ScriptedPublisher()
    queue.script = perEntry((event) => (event.eventType === 'Bad' ? refusedTransient : undefined))
    for (let round = 0; round < 3; round++) {
      if (round === 0) await rig.write(`SELECT 'Bad', '{"i": 0}', NULL, NULL`)
      await rig.write(`SELECT 'Good', '{"i": ' || i || '}', NULL, NULL FROM generate_series(1, 5) i`)
      await rig.pass({
        publishers: { queue },
        passMs: 500,
        settings: { policy: { maxAttempts: 3, baseMs: 1, capMs: 1 }, maxShards: 16, requestsInFlight: 1 },
      })
    }
    const [bad] = await rig.status(`event_type = 'Bad'`)
    expect(bad).toMatchObject({ status: 'failed', attempts: 3, last_error_code: 'InternalError' })
    expect(bad?.last_error).toContain('3 charged attempts')
    expect((await rig.status(`event_type = 'Good' AND status = 'published'`)).length).toBe(15)
  })

  it('lets events without a route, or with an unknown destination, wait uncharged while others flow', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(
      `VALUES ('Known', '{"i": 1}', NULL, NULL), ('Nobody', '{"i": 2}', NULL, NULL), ('Known', '{"i": 3}', NULL, 'elsewhere')`,
    )
    const { telemetry, totals } = await rig.pass({
      publishers: { queue },
      defaultDestination: null,
      routes: [{ eventType: 'Known', to: 'queue' }],
    })
    expect(queue.accepted.map(number)).toEqual([1])
    expect(totals).toMatchObject({ published: 1, retried: 0, failed: 0 })
    expect(totals.unrouted).toBeGreaterThanOrEqual(2)
    expect(telemetry.sum('Unrouted')).toBe(totals.unrouted)
    const waiting = await rig.status(`status = 'pending'`)
    expect(waiting.map(({ attempts, last_error_code }) => [attempts, last_error_code]).sort()).toEqual([
      [0, 'NoRoute'],
      [0, 'UnknownDestination'],
    ])
    expect(waiting.find(({ last_error_code }) => last_error_code === 'NoRoute')?.last_error).toContain('"Nobody"')

    await rig.drain({ publishers: { queue, elsewhere: new ScriptedPublisher() } })
    expect((await rig.status(`status = 'published'`)).length).toBe(3)
  })

  it('fetches a payload that is too large for a claim, and sends it verbatim', async () => {
    const queue = new ScriptedPublisher()
    const payload = JSON.stringify({ i: 1, text: 'é😀'.repeat(40_000), digits: 0 }).replace(
      '"digits":0',
      '"digits":1234567890123456789',
    )
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) VALUES ('Large', $1), ('Small', '{"i": 2}')`, [payload])
    await rig.pass({ publishers: { queue } })
    expect(queue.accepted.find(({ eventType }) => eventType === 'Large')?.payload === payload).toBe(true)
    expect(queue.accepted).toHaveLength(2)
  })

  it('fails a payload that no message can carry without ever fetching it', async () => {
    const queue = new ScriptedPublisher(undefined, { maxBytes: 100_000 })
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) VALUES ('Large', $1)`, [
      JSON.stringify(['x'.repeat(200_000)]),
    ])
    rig.api.requests.length = 0
    await rig.pass({ publishers: { queue } })
    const [failed] = await rig.status()
    expect(failed).toMatchObject({ status: 'failed', last_error_code: 'PayloadTooLarge' })
    expect(failed?.last_error).toMatch(/200004 bytes.*takes 100000/)
    expect(rig.api.requests.some(({ sql }) => sql?.includes('outbox_payload_chunks'))).toBe(false)
  })

  it('settles an event as failed whose row somebody deleted by hand', async () => {
    const queue = new ScriptedPublisher()
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', NULL, NULL FROM generate_series(1, 2) i`)
    await rig.api.db.query(`DELETE FROM outbox WHERE id = (SELECT id FROM outbox LIMIT 1)`)
    const { telemetry } = await rig.pass({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(1)
    expect(telemetry.logged('event-failed')).toMatchObject([{ errorCode: 'EventRowMissing' }])
  })

  it('settles it so too when the row goes between its claim and the fetching of its payload', async () => {
    const queue = new ScriptedPublisher()
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) VALUES ('Large', $1)`, [
      JSON.stringify(['x'.repeat(60_000)]),
    ])
    const readPayload: typeof rig.store.readPayload = async (id, options) => {
      await rig.api.db.query('DELETE FROM outbox')
      return rig.store.readPayload(id, options)
    }
    const { telemetry, totals } = await rig.pass({ publishers: { queue }, store: { ...rig.store, readPayload } })
    expect(queue.requests).toEqual([])
    expect(totals).toMatchObject({ retried: 0, failed: 1 })
    expect(telemetry.logged('event-failed')).toMatchObject([{ errorCode: 'EventRowMissing' }])
  })
})
