import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboundEvent } from '../../src/core/event.js'
import type { PublishAnswer } from '../../src/core/outcome.js'
import { relayRig } from '../support/relay.js'
import { accepted, acceptAll, fault, perEntry, ScriptedPublisher } from '../support/scripted-publisher.js'

// answers of more than 60,000 bytes are refused, so that claims that are too large happen
const rig = await relayRig({ limits: { maxResponseBytes: 60_000 } })
beforeEach(() => rig.reset())

/** A promise that the test resolves. */
function gate<Value = void>() {
  let open: (value: Value) => void = () => undefined
  const opened = new Promise<Value>((resolve) => (open = resolve))
  return { opened, open }
}

const answered = (events: readonly OutboundEvent[]): PublishAnswer => ({ kind: 'answered', entries: events.map(accepted) })
const write = (count: number, key = 'NULL', destination = 'NULL') =>
  rig.write(`SELECT 'Made', '{"i": ' || i || '}', ${key}, ${destination} FROM generate_series(1, ${count}) i`)
const published = async () => (await rig.status(`status = 'published'`)).length
const calls = (name: string) => rig.api.requests.filter(({ sql }) => sql?.includes(name)).length

describe('a relay pass, when things go wrong', () => {
  it.each([
    ['the answer to a claim', 'outbox_claim'],
    ['the answer to a settlement', 'outbox_settle'],
  ])('publishes nothing twice and loses nothing when %s is lost', async (_, match) => {
    const queue = new ScriptedPublisher()
    await write(120, `'key-' || i % 9`)
    rig.api.inject({ match, fault: { kind: 'drop-reply' }, times: 2 })
    const { totals, telemetry } = await rig.pass({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(120)
    expect(await published()).toBe(120)
    expect(totals).toMatchObject({ published: 120, leaseLost: 0 })
    expect(telemetry.sum('Published')).toBe(120)
    expect(queue.order.violations).toEqual([])
    expect(await rig.api.db.query('SELECT 1 FROM outbox_shard WHERE lease_token IS NOT NULL')).toEqual([])
  })

  it('is refused quietly by the fence when its lease ran out and another relay took over: it changes nothing, and counts it', async () => {
    const zombie = new ScriptedPublisher()
    const taken = gate()
    zombie.script = async (events) => {
      await taken.opened
      return answered(events)
    }
    await write(20)
    const endsAtMs = performance.now() + 3_000
    const pass = rig.pass({ publishers: { queue: zombie }, passMs: 3_000, settings: { maxShards: 16, requestsInFlight: 1 } })
    await vi.waitFor(() => expect(zombie.inFlight).toBe(1), { timeout: 15_000 })
    // its time is over, so that no other batch of it takes the shards over
    await vi.waitFor(() => expect(performance.now()).toBeGreaterThan(endsAtMs), { timeout: 15_000 })
    await rig.api.db.query(`UPDATE outbox_shard SET lease_until = '-infinity' WHERE lease_token IS NOT NULL`)

    const heir = new ScriptedPublisher()
    // in more than one pass, if the first meets the zombie just as it gives back what it did not send
    await rig.drain({ publishers: { queue: heir } })
    expect(heir.accepted).toHaveLength(20)
    const receipts = await rig.api.db.query('SELECT * FROM outbox_receipt ORDER BY event_id')

    taken.open()
    const { totals, telemetry } = await pass
    expect(totals.published).toBe(0)
    expect(totals.leaseLost).toBeGreaterThan(0)
    expect(telemetry.sum('LeaseLost')).toBe(totals.leaseLost)
    expect(telemetry.logged('lease-lost')).not.toEqual([])
    expect(telemetry.sum('Published')).toBe(0)
    expect(await rig.api.db.query('SELECT * FROM outbox_receipt ORDER BY event_id')).toEqual(receipts)
    // what it sent late are duplicates, with the same ids
    const ids = new Set(heir.acceptedIds())
    expect(zombie.acceptedIds().every((id) => ids.has(id))).toBe(true)
  })

  it('renews its lease while a request is out, so that nobody else takes its shards', async () => {
    const slow = new ScriptedPublisher()
    const renewed = gate()
    slow.script = async (events) => {
      await renewed.opened
      return answered(events)
    }
    await write(5)
    rig.api.requests.length = 0
    const pass = rig.pass({
      publishers: { queue: slow },
      passMs: 60_000,
      settings: { leaseSeconds: 4, requestTimeoutMs: 1000, maxShards: 16, idleWaitMs: 1000 },
    })
    await vi.waitFor(() => expect(calls('outbox_renew')).toBeGreaterThanOrEqual(3), { timeout: 15_000 })
    const other = new ScriptedPublisher()
    await rig.pass({ publishers: { queue: other } })
    expect(other.requests).toEqual([])
    renewed.open()
    expect((await pass).totals).toMatchObject({ published: 5, leaseLost: 0 })
  })

  it('sends nothing when its lease may be over', async () => {
    const queue = new ScriptedPublisher()
    await write(5)
    // the claim takes 2.5 s of a lease of 5 s: what is left is not enough for a request (1 s) and the margin (2 s)
    rig.api.inject({ match: 'outbox_claim', fault: { kind: 'latency', ms: 2500 }, times: 9 })
    const { totals } = await rig.pass({ publishers: { queue }, passMs: 4000, settings: { leaseSeconds: 5 } })
    expect(totals.claimed).toBeGreaterThanOrEqual(5)
    expect(queue.requests).toEqual([])
    rig.api.clearFaults()
    await rig.pass({ publishers: { queue } })
    expect(await published()).toBe(5)
  })

  it('halves its claims when an answer is too large, down to what fits, and loses nothing', async () => {
    const queue = new ScriptedPublisher()
    const payload = JSON.stringify(['x'.repeat(9_000)])
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) SELECT 'Made', $1 FROM generate_series(1, 40)`, [payload])
    const { telemetry } = await rig.pass({ publishers: { queue } })
    expect(telemetry.sum('OversizeClaims')).toBeGreaterThan(0)
    expect(queue.accepted).toHaveLength(40)
    expect(new Set(queue.acceptedIds()).size).toBe(40)
    expect(await published()).toBe(40)
  })

  it('holds no transaction and no lock while a destination is called', async () => {
    const queue = new ScriptedPublisher()
    let open: unknown[] = []
    let locked: unknown = 'none'
    queue.script = async (events) => {
      open = await rig.api.db.query(
        `SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`,
      )
      locked = await rig.api.db.query('SELECT shard FROM outbox_shard FOR UPDATE NOWAIT').catch((error: unknown) => error)
      return answered(events)
    }
    await write(3)
    // one batch alone, so that no claim of another one is seen
    await rig.pass({ publishers: { queue }, settings: { maxShards: 16, requestsInFlight: 1 } })
    expect(open).toEqual([])
    expect(locked).toHaveLength(16)
  })

  it('goes on with one destination while requests to another get no answer', async () => {
    const [stuck, quick] = [new ScriptedPublisher(), new ScriptedPublisher()]
    const released = gate()
    stuck.script = async () => {
      await released.opened
      return fault('TimeoutError')
    }
    await write(400, 'NULL', `'stuck'`)
    const pass = rig.pass({ publishers: { stuck, quick }, passMs: 20_000, settings: { profile: 'drain', requestsInFlight: 8 } })
    await vi.waitFor(() => expect(stuck.inFlight).toBe(8), { timeout: 15_000 })
    // all of this is written while the requests are out, most of it in shards that the stuck events hold leased
    for (let wave = 1; wave <= 5; wave++) {
      await write(50, 'NULL', `'quick'`)
      await vi.waitFor(() => expect(quick.accepted).toHaveLength(50 * wave), { timeout: 5_000 })
    }
    expect(stuck.inFlight).toBeGreaterThan(0)
    stuck.script = acceptAll
    released.open()
    await pass
    await rig.drain({ publishers: { stuck, quick } })
    expect(stuck.accepted).toHaveLength(400)
    expect(await rig.status(`attempts > 1`)).toEqual([])
  })

  it('keeps the shard of an event that is out, and gives back the others as soon as they are settled', async () => {
    const [slow, quick] = [new ScriptedPublisher(), new ScriptedPublisher()]
    const released = gate()
    slow.script = async (events) => {
      await released.opened
      return answered(events)
    }
    await write(1, 'NULL', `'slow'`)
    await write(40, 'NULL', `'quick'`)
    const pass = rig.pass({ publishers: { slow, quick }, settings: { maxShards: 16 } })
    await vi.waitFor(() => expect(slow.inFlight).toBe(1), { timeout: 15_000 })
    const leases = (where: string) => rig.api.db.query(`SELECT shard, lease_token FROM outbox_shard WHERE ${where}`)
    const lease = await leases(`shard = (SELECT shard FROM outbox_delivery WHERE destination = 'slow')`)
    await vi.waitFor(async () => expect(await leases('lease_token IS NOT NULL')).toEqual(lease), { timeout: 5_000 })
    expect(await published()).toBe(40)
    released.open()
    expect((await pass).totals).toMatchObject({ published: 41, leaseLost: 0 })
    expect(slow.requests).toHaveLength(1)
  })

  it('goes on with the other shards, however many of its batches wait for destinations that do not answer', async () => {
    const quick = new ScriptedPublisher()
    const released = gate()
    const stuck = Array.from({ length: 4 }, () => {
      const publisher = new ScriptedPublisher()
      publisher.script = async (events) => {
        await released.opened
        return answered(events)
      }
      return publisher
    })
    const publishers = { ...Object.fromEntries(stuck.map((one, n) => [`stuck${n}`, one])), quick }
    // the first before the pass, which would find nothing to drain and return; each other one while the ones before are
    // out, so that it waits in a batch of its own
    await write(1, 'NULL', `'stuck0'`)
    const pass = rig.pass({ publishers, passMs: 60_000, settings: { profile: 'drain' } })
    for (const [n, one] of stuck.entries()) {
      if (n > 0) await write(1, 'NULL', `'stuck${n}'`)
      await vi.waitFor(() => expect(one.inFlight).toBe(1), { timeout: 15_000 })
    }
    await write(160, 'NULL', `'quick'`)
    await vi.waitFor(() => expect(quick.accepted).toHaveLength(160), { timeout: 15_000 })
    expect(stuck.map(({ inFlight }) => inFlight)).toEqual([1, 1, 1, 1])
    released.open()
    await pass
    expect(await published()).toBe(164)
  })

  it('returns only when nothing is in flight any more, and has given everything back', async () => {
    const slow = new ScriptedPublisher()
    const released = gate()
    slow.script = async (events) => {
      await released.opened
      return answered(events)
    }
    await write(100)
    let returned = false
    const pass = rig
      .pass({ publishers: { queue: slow }, passMs: 300, settings: { profile: 'continuous', requestsInFlight: 2 } })
      .then((result) => {
        returned = true
        return result
      })
    await vi.waitFor(() => expect(slow.inFlight).toBe(2), { timeout: 15_000 })
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(returned).toBe(false)
    released.open()
    const { totals } = await pass
    expect(slow.inFlight).toBe(0)
    // its time was over: nothing was begun after these two
    expect(slow.requests).toHaveLength(2)
    expect(totals.published).toBe(slow.accepted.length)
    expect(await rig.api.db.query('SELECT 1 FROM outbox_shard WHERE lease_token IS NOT NULL')).toEqual([])
    expect((await rig.status(`status = 'pending'`)).length).toBe(100 - slow.accepted.length)
  })

  it('ends with the error when the database refuses it, after what was in flight; nothing is lost', async () => {
    const queue = new ScriptedPublisher()
    await write(30)
    rig.api.inject({ match: 'outbox_settle', fault: { kind: 'error', name: 'AccessDeniedException', message: 'no' }, times: 50 })
    await expect(rig.pass({ publishers: { queue } })).rejects.toMatchObject({ code: 'Sql', kind: 'permanent' })
    expect(queue.inFlight).toBe(0)
    rig.api.clearFaults()
    await rig.api.db.query(`UPDATE outbox_shard SET lease_until = '-infinity'`)
    await rig.drain({ publishers: { queue } })
    expect(await published()).toBe(30)
  })

  it('waits for what is in flight, and records it, when the database refuses a renewal meanwhile', async () => {
    const slow = new ScriptedPublisher()
    const released = gate()
    slow.script = async (events) => {
      await released.opened
      return answered(events)
    }
    await write(5)
    rig.api.inject({ match: 'outbox_renew', fault: { kind: 'error', name: 'AccessDeniedException', message: 'no' } })
    rig.api.requests.length = 0
    const ended = rig.pass({ publishers: { queue: slow }, settings: { leaseSeconds: 4, maxShards: 16 } }).then(
      () => 'returned with something in flight',
      (error: unknown) => [error, slow.inFlight],
    )
    await vi.waitFor(() => expect(calls('outbox_renew')).toBe(1), { timeout: 10_000 })
    await new Promise((resolve) => setTimeout(resolve, 300))
    released.open()
    expect(await ended).toMatchObject([{ code: 'Sql', kind: 'permanent' }, 0])
    expect(await published()).toBe(5)
  })

  it('puts events off, uncharged, whose requests all break off for a fault of the relay itself', async () => {
    const queue = new ScriptedPublisher()
    queue.script = () => {
      throw new Error('a bug')
    }
    await write(30, `'key-' || i % 20`)
    await rig.pass({ publishers: { queue }, passMs: 500 })
    expect((await rig.status(`status = 'pending' AND attempts = 0`)).length).toBe(30)
    expect((await rig.status(`last_error_code = 'EventFault' AND last_error = 'Error: a bug'`)).length).toBeGreaterThan(0)
    expect(await rig.api.db.query('SELECT 1 FROM outbox_shard WHERE lease_token IS NOT NULL')).toEqual([])

    queue.script = acceptAll
    await rig.drain({ publishers: { queue } })
    expect(new Set(queue.acceptedIds()).size).toBe(30)
    expect(queue.order.violations).toEqual([])
  })

  it.each([
    ['claims of many events', 1500, '', 700_000],
    ['claims that their bytes cut short', 600, 'x'.repeat(900), 12_000],
  ])('delivers in order per key with two relays, entry errors, missing entries and whole failures, from %s', async (...by) => {
    const [, count, filling, claimBytes] = by
    const a = new ScriptedPublisher()
    const b = new ScriptedPublisher(a.order)
    let answers = 0
    const moody = perEntry(() => {
      answers += 1
      if (answers % 11 === 0) return { kind: 'refused', fault: 'transient', code: 'InternalError', reason: 'moody' }
      return answers % 17 === 0 ? { kind: 'missing' } : undefined
    })
    a.script = (events, request) => (request % 7 === 0 ? fault() : moody(events, request))
    b.script = moody
    await rig.write(
      `SELECT 'Made', '{"x":"${filling}"}', 'key-' || i % 40, CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, ${count}) i`,
    )
    const relay = () =>
      rig.drain({
        publishers: { a, b },
        settings: { keyRows: 20, claimBytes, policy: { maxAttempts: 100, baseMs: 5, capMs: 20 } },
      })
    await Promise.all([relay(), relay()])
    expect(a.order.violations).toEqual([])
    expect(await published()).toBe(count)
    expect(new Set([...a.acceptedIds(), ...b.acceptedIds()]).size).toBe(count)
  })
})
