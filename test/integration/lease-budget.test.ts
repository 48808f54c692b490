import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboundEvent } from '../../src/core/event.js'
import type { PublishAnswer } from '../../src/core/outcome.js'
import { relayRig } from '../support/relay.js'
import { accepted, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const number = (event: OutboundEvent) => (JSON.parse(event.payload) as { i: number }).i
const write = (count: number, key = 'NULL') =>
  rig.write(`SELECT 'Made', '{"i": ' || i || '}', ${key}, NULL FROM generate_series(1, ${count}) i`)
const leases = () => rig.api.db.query('SELECT shard FROM outbox_shard WHERE lease_token IS NOT NULL')

/** A lease that is never renewed: a request (500 ms) and the margin (2 s) leave it this long for sending. */
const settings = { leaseSeconds: 5, requestTimeoutMs: 500, maxShards: 16, requestsInFlight: 1 }
const sendingMs = 5000 - 500 - 2000
const neverRenewed = () =>
  rig.api.inject({ match: 'outbox_renew', fault: { kind: 'error', name: 'ThrottlingException' }, times: 10_000 })

/** A destination that takes its time for each request, and remembers when each was sent. */
function slow(ms: number, answer: (events: readonly OutboundEvent[]) => PublishAnswer) {
  const queue = new ScriptedPublisher()
  const sentAtMs: number[] = []
  queue.script = async (events) => {
    sentAtMs.push(performance.now())
    await new Promise((resolve) => setTimeout(resolve, ms))
    return answer(events)
  }
  return { queue, sentAtMs }
}
/** When the first claim arrived: the lease is counted from before it. */
const claimArrives = async () => {
  await vi.waitFor(() => expect(rig.api.requests.some(({ sql }) => sql?.includes('outbox_claim') === true)).toBe(true), {
    timeout: 60_000,
    interval: 1,
  })
  return performance.now()
}

describe('a relay that can not renew its lease', () => {
  it('sends one request after another while there is time, and gives the unsent tail back', async () => {
    const { queue, sentAtMs } = slow(300, (events) => ({ kind: 'answered', entries: events.map(accepted) }))
    // one key: each event is a request of its own, 12 s in all
    await write(40, `'k'`)
    neverRenewed()
    rig.api.requests.length = 0
    const pass = rig.pass({ publishers: { queue }, settings, passMs: 60_000 }).catch((error: unknown) => error)
    const claimedAtMs = await claimArrives()
    const givenBack = vi.waitFor(
      async () => {
        expect(await rig.status(`status = 'published'`)).not.toEqual([])
        expect(await leases()).toEqual([])
        return performance.now()
      },
      { timeout: 60_000, interval: 20 },
    )
    await vi.waitFor(() => expect(sentAtMs.length).toBeGreaterThan(1), { timeout: 60_000 })
    const givenBackAtMs = await givenBack
    const sent = sentAtMs.filter((atMs) => atMs < givenBackAtMs)
    // 50 ms for the noticing of the claim
    expect(Math.max(...sent) - claimedAtMs).toBeLessThan(sendingMs + 50)
    expect(sent.length).toBeGreaterThan(1)
    rig.api.clearFaults()
    await pass
    await rig.drain({ publishers: { queue }, settings: { keyRows: 50 } })
    // each once: what was given back unsent had no attempt
    expect(queue.accepted.map(number)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
    expect(await rig.status('attempts <> 1')).toEqual([])
  })

  it('stops between the halves of a request that is refused for something in it, and gives the untried rest back', async () => {
    // refused for number 1, each time after 700 ms: 10, 5, 3, 2, 1 ... would take 7 s
    const { queue, sentAtMs } = slow(700, (events) =>
      events.some((event) => number(event) === 1) && events.length > 1
        ? { kind: 'request-fault', code: 'BatchRequestTooLong', reason: 'number 1' }
        : { kind: 'answered', entries: events.map(accepted) },
    )
    await write(10)
    neverRenewed()
    rig.api.requests.length = 0
    const pass = rig.pass({ publishers: { queue }, settings, passMs: 60_000 }).catch((error: unknown) => error)
    const claimedAtMs = await claimArrives()
    await vi.waitFor(async () => expect([sentAtMs.length > 1, await leases()]).toEqual([true, []]), {
      timeout: 60_000,
      interval: 20,
    })
    const sent = [...sentAtMs]
    // it was stopped in the middle: halved, and not to the end
    expect(queue.requests.slice(0, 2).map(({ length }) => length)).toEqual([10, 5])
    expect(queue.accepted).toEqual([])
    expect(sent.length).toBeLessThan(5)
    expect(Math.max(...sent) - claimedAtMs).toBeLessThan(sendingMs + 50)
    expect(await rig.status(`status = 'pending' AND attempts = 0 AND last_error IS NULL`)).toHaveLength(10)
    rig.api.clearFaults()
    await pass
    await rig.drain({ publishers: { queue } })
    expect(new Set(queue.acceptedIds()).size).toBe(10)
    expect(await rig.status(`status = 'published' AND attempts = 1`)).toHaveLength(10)
  })
})
