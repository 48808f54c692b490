import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboundEvent } from '../../../src/core/event.js'
import type { PublishAnswer } from '../../../src/core/outcome.js'
import type { ServiceResponse } from '../../../src/local/service.js'
import { relayRig } from '../../support/relay.js'
import { acceptAll, accepted, ScriptedPublisher } from '../../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

/** The next call of this function is cut off, and arrives when the test says so. */
function holdBack(call: string) {
  let arrive = (): void => undefined
  let heard: (answer: ServiceResponse) => void = () => undefined
  const until = new Promise<void>((resolve) => (arrive = resolve))
  const answer = new Promise<ServiceResponse>((resolve) => (heard = resolve))
  rig.api.inject({ match: call, fault: { kind: 'late', until, arrived: heard } })
  return {
    /** Lets it arrive; answers how many rows it got, and the numbers of the first of them, once it had its effect. */
    arrives: async () => {
      arrive()
      const { status, body } = await answer
      expect(status).toBe(200)
      const { records } = JSON.parse(body.toString()) as { records: readonly (readonly Record<string, unknown>[])[] }
      return { rows: records.length, first: (records[0] ?? []).map((field) => Number(Object.values(field)[0])) }
    },
  }
}

const write = (count: number, key = 'NULL', from = 1) =>
  rig.write(`SELECT 'Made', '{"i": ' || i || '}', ${key}, NULL FROM generate_series(${from}, ${from + count - 1}) i`)
const leases = () =>
  rig.api.db.query<{ shard: number }>('SELECT shard FROM outbox_shard WHERE lease_token IS NOT NULL ORDER BY shard')
/** Everything that a call of a relay could change, down to the version of each row. */
const rows = () =>
  rig.api.db.query(
    `SELECT 'queue', event_id, xmin::text FROM outbox_delivery UNION ALL
     SELECT 'receipt', event_id, xmin::text FROM outbox_receipt ORDER BY 1, 2`,
  )
/** A destination whose first request waits until the test lets it go on. */
function gated() {
  const queue = new ScriptedPublisher()
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  queue.script = async (events: readonly OutboundEvent[]): Promise<PublishAnswer> => {
    await opened
    return { kind: 'answered', entries: events.map(accepted) }
  }
  return { queue, open }
}
const eachOnce = async (events: number, ...queues: readonly ScriptedPublisher[]) => {
  const ids = queues.flatMap((queue) => queue.acceptedIds())
  expect(ids).toHaveLength(events)
  expect(new Set(ids).size).toBe(events)
  expect(await rig.status(`status = 'published' AND attempts = 1`)).toHaveLength(events)
  expect(queues.flatMap(({ order }) => order.violations)).toEqual([])
}

describe('a claim that arrives late', () => {
  it('while its repeat is being served brings nothing that is sent a second time', async () => {
    const { queue, open } = gated()
    await write(40, `'key-' || i % 7`)
    const late = holdBack('outbox_claim')
    const pass = rig.pass({ publishers: { queue }, passMs: 60_000, settings: { maxShards: 16 } })
    await vi.waitFor(() => expect(queue.inFlight).toBeGreaterThan(0), { timeout: 60_000 })
    expect((await late.arrives()).rows).toBeGreaterThan(0)
    open()
    const { totals } = await pass
    await eachOnce(40, queue)
    expect(totals).toMatchObject({ published: 40, leaseLost: 0 })
    expect(await leases()).toEqual([])
  })

  it('when its batch is settled leases nothing: a relay finds all that is written since at once', async () => {
    const queue = new ScriptedPublisher()
    await write(40)
    const late = holdBack('outbox_claim')
    await rig.pass({ publishers: { queue } })
    await write(40, 'NULL', 41)
    expect((await late.arrives()).rows).toBe(0)
    expect(await leases()).toEqual([])
    await rig.pass({ publishers: { queue } })
    await eachOnce(80, queue)
  })

  it.each([
    ['when others have settled its shards since', 'claimed again'],
    ['when the relay gave it up, and gave back what it might have leased', 'given up'],
  ])('%s blocks its shards for one lease, and no longer; nothing is lost or doubled', async (_, how) => {
    const queue = new ScriptedPublisher()
    const leaseSeconds = 4
    const settings = { leaseSeconds, requestTimeoutMs: 500 }
    await write(40, `'key-' || i % 7`)
    const late = holdBack('outbox_claim')
    if (how === 'given up') {
      rig.api.inject({ match: 'outbox_claim', fault: { kind: 'reset' }, times: 1000 })
      await expect(rig.pass({ publishers: { queue }, settings })).rejects.toMatchObject({ kind: 'ambiguous' })
      rig.api.clearFaults()
    } else {
      await rig.pass({ publishers: { queue }, settings })
      // one more batch in every shard, so that no shard remembers the first one
      await write(160, 'NULL', 41)
      await rig.pass({ publishers: { queue }, settings })
      await write(40, `'key-' || i % 7`, 201)
    }
    const accepts = queue.accepted.length
    expect((await late.arrives()).rows).toBe(40)
    const began = performance.now()
    expect(await leases()).not.toEqual([])
    await rig.pass({ publishers: { queue }, settings })
    expect(queue.accepted).toHaveLength(accepts)
    await rig.drain({ publishers: { queue }, settings }, 1000)
    expect(performance.now() - began).toBeLessThan(leaseSeconds * 1000 + 10_000)
    await eachOnce(how === 'given up' ? 40 : 240, queue)
    expect(await leases()).toEqual([])
  })

  it('for more of its batch, after its repeat was answered, brings nothing that is sent a second time', async () => {
    const { queue, open } = gated()
    await write(1, `'slow'`)
    rig.api.requests.length = 0
    const claims = () => rig.api.requests.filter(({ sql }) => sql?.includes('outbox_claim') === true).length
    const other = new ScriptedPublisher()
    const publishers = { queue, other }
    const pass = rig.pass({ publishers, passMs: 60_000, settings: { maxShards: 16 } })
    await vi.waitFor(() => expect(queue.inFlight).toBe(1), { timeout: 60_000 })
    const late = holdBack('outbox_claim')
    const before = claims()
    // of the same key for another destination, and of no key
    await rig.write(`SELECT 'More', '{}', 'slow', 'other' FROM generate_series(1, 3) i`)
    await rig.write(`SELECT 'More', '{}', NULL, 'other' FROM generate_series(1, 30) i`)
    await vi.waitFor(() => expect(claims()).toBeGreaterThan(before + 1), { timeout: 60_000 })
    await vi.waitFor(() => expect(other.accepted).toHaveLength(30), { timeout: 60_000 })
    await late.arrives()
    open()
    await pass
    await rig.drain({ publishers })
    await eachOnce(34, queue, other)
  })
})

describe('a settlement that arrives late', () => {
  it('when its repeat was answered and another relay serves the shards changes nothing', async () => {
    const queue = new ScriptedPublisher()
    await write(40, `'key-' || i % 7`)
    const late = holdBack('outbox_settle')
    const { totals, telemetry } = await rig.pass({ publishers: { queue } })
    expect(totals).toMatchObject({ published: 40, leaseLost: 0 })
    expect(telemetry.sum('Published')).toBe(40)

    const { queue: next, open } = gated()
    await write(40, `'key-' || i % 7`, 41)
    const pass = rig.pass({ publishers: { queue: next }, passMs: 60_000, settings: { maxShards: 16 } })
    await vi.waitFor(() => expect(next.inFlight).toBeGreaterThan(0), { timeout: 60_000 })
    const [before, leased] = [await rows(), await leases()]
    const [published, retried, held, failed, freed, givenBack, kept] = (await late.arrives()).first
    expect([published, retried, held, failed, freed, givenBack, kept]).toEqual([0, 0, 0, 0, 0, 0, 0])
    expect([await rows(), await leases()]).toEqual([before, leased])
    open()
    expect((await pass).totals).toMatchObject({ published: 40, leaseLost: 0 })
    await eachOnce(80, queue, next)
  })

  it('of a part, while its batch goes on, changes nothing that was decided since', async () => {
    const { queue: slow, open } = gated()
    const quick = new ScriptedPublisher()
    const publishers = { slow, quick }
    await rig.write(
      `SELECT 'Made', '{}', 'key-' || i % 9, CASE WHEN i = 9 THEN 'slow' ELSE 'quick' END FROM generate_series(1, 27) i`,
    )
    const late = holdBack('outbox_settle')
    const pass = rig.pass({ publishers, passMs: 60_000, settings: { maxShards: 16 } })
    // its repeat is answered: the part is recorded, the batch still waits for the slow one
    await vi.waitFor(async () => expect((await rig.status(`status = 'published'`)).length).toBeGreaterThan(0), {
      timeout: 60_000,
    })
    expect(slow.inFlight).toBe(1)
    const [before, leased] = [await rows(), await leases()]
    expect((await late.arrives()).first.slice(0, 5)).toEqual([0, 0, 0, 0, 0])
    expect([await rows(), await leases()]).toEqual([before, leased])
    open()
    expect((await pass).totals).toMatchObject({ leaseLost: 0 })
    await rig.drain({ publishers })
    await eachOnce(27, slow, quick)
  })

  /** A relay whose settlement is never answered: it gives up, and what it sent is not recorded. */
  const giveUp = async (queue: ScriptedPublisher) => {
    await write(40, `'key-' || i % 7`)
    const late = holdBack('outbox_settle')
    rig.api.inject({ match: 'outbox_settle', fault: { kind: 'reset' }, times: 1000 })
    await expect(rig.pass({ publishers: { queue }, passMs: 1000, settings: { maxShards: 16 } })).rejects.toMatchObject({
      kind: 'ambiguous',
    })
    rig.api.clearFaults()
    expect(await rig.status(`status = 'published'`)).toEqual([])
    return late
  }

  it('when the relay gave it up, and before its lease is over, records what was sent: nothing is sent again', async () => {
    const queue = new ScriptedPublisher()
    const late = await giveUp(queue)
    const sent = queue.accepted.length
    expect((await late.arrives()).first[0]).toBe(sent)
    await rig.api.db.query(`UPDATE outbox_shard SET lease_until = '-infinity'`)
    await rig.drain({ publishers: { queue } })
    await eachOnce(40, queue)
  })

  it('when its lease was over and another relay took over changes nothing; what it sent is doubled, in order', async () => {
    const queue = new ScriptedPublisher()
    const late = await giveUp(queue)
    const sent = queue.accepted.length
    await rig.api.db.query(`UPDATE outbox_shard SET lease_until = '-infinity'`)
    queue.script = acceptAll
    await rig.drain({ publishers: { queue } })
    const before = await rows()
    expect((await late.arrives()).first.slice(0, 7)).toEqual([0, 0, 0, 0, 0, 0, 0])
    expect(await rows()).toEqual(before)
    expect(queue.accepted).toHaveLength(40 + sent)
    expect(new Set(queue.acceptedIds()).size).toBe(40)
    expect(await rig.status(`status = 'published' AND attempts = 1`)).toHaveLength(40)
  })
})

describe('a renewal that arrives late', () => {
  it('when its shards are given back, or taken over, leases nothing and prolongs nothing', async () => {
    const { queue, open } = gated()
    await write(5)
    const late = holdBack('outbox_renew')
    const settings = { leaseSeconds: 4, requestTimeoutMs: 500, maxShards: 16 }
    const pass = rig.pass({ publishers: { queue }, passMs: 60_000, settings })
    const renewals = () => rig.api.requests.filter(({ sql }) => sql?.includes('outbox_renew') === true).length
    rig.api.requests.length = 0
    await vi.waitFor(() => expect(renewals()).toBeGreaterThanOrEqual(2), { timeout: 60_000 })
    open()
    await pass
    const heir = gated()
    await write(5, 'NULL', 6)
    const next = rig.pass({ publishers: { queue: heir.queue }, passMs: 60_000, settings: { maxShards: 16 } })
    await vi.waitFor(() => expect(heir.queue.inFlight).toBe(1), { timeout: 60_000 })
    const until = 'SELECT shard, lease_token, lease_until FROM outbox_shard ORDER BY shard'
    const before = await rig.api.db.query(until)
    expect((await late.arrives()).first).toEqual([0])
    expect(await rig.api.db.query(until)).toEqual(before)
    heir.open()
    expect((await next).totals).toMatchObject({ published: 5, leaseLost: 0 })
    await eachOnce(10, queue, heir.queue)
  })
})
