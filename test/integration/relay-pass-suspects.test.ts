import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import type { OutboundEvent } from '../../src/core/event.js'
import type { Clock } from '../../src/core/clock.js'
import { SqlError } from '../../src/core/errors.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { relayRig } from '../support/relay.js'
import { acceptAll, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const write = (count: number, key = 'NULL') =>
  rig.write(`SELECT 'Made', '{"i": ' || i || '}', ${key}, NULL FROM generate_series(1, ${count}) i`)
const starts = async () =>
  (await rig.api.db.query<{ n: number }>('SELECT COALESCE(sum(starts), 0)::int AS n FROM outbox_delivery'))[0]!.n

/** As a relay that takes what is due, and ends. */
async function crash(maxRows = 500): Promise<void> {
  await take(maxRows, 16)
  await endLeases()
}

async function take(maxRows: number, maxShards: number): Promise<number> {
  const options = { token: randomUUID(), owner: 'dead', maxRows, maxBytes: 700_000, keyRows: 50, maxShards, leaseSeconds: 30 }
  const { events } = await rig.store.claim({ ...options, inFlight: null, suspectLeaseSeconds: null })
  return events.length
}
const endLeases = () => rig.api.db.query(`UPDATE outbox_shard SET lease_until = '-infinity' WHERE lease_owner = 'dead'`)

describe('a relay pass that meets suspects', () => {
  it('sends them one at a time, with nothing else in flight, each marked as started, and what else is due as always', async () => {
    const queue = new ScriptedPublisher()
    await write(60, `'key-' || i % 9`)
    await crash(30)
    const marked: number[] = []
    queue.script = async (events, request) => {
      if (events.length === 1 && events[0]!.reclaimedFrom !== null) {
        marked.push(await starts())
        expect(queue.inFlight).toBe(1)
      }
      return acceptAll(events, request)
    }
    await rig.drain({ publishers: { queue } })
    expect(marked).toEqual(Array.from({ length: 30 }, () => 1))
    expect(queue.accepted).toHaveLength(60)
    expect(queue.order.violations).toEqual([])
    expect(queue.requests.some(({ length }) => length > 1)).toBe(true)
  })

  it('leaves one that becomes a suspect while a request is out, until that is answered', async () => {
    const queue = new ScriptedPublisher()
    await write(40)
    const taken = await take(500, 1)
    const beside: number[] = []
    queue.script = async (events, request) => {
      if (events[0]!.reclaimedFrom !== null) {
        beside.push(queue.inFlight - 1)
      } else if (queue.requests.length === 1) {
        await endLeases()
        await new Promise((resolve) => setTimeout(resolve, 1500))
      }
      return acceptAll(events, request)
    }
    await rig.drain({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(40)
    expect(taken).toBeGreaterThan(0)
    expect(beside).toEqual(Array.from({ length: taken }, () => 0))
  })

  it('ends with its time, though one waits until a request that takes longer is answered', async () => {
    const queue = new ScriptedPublisher()
    await write(40)
    await take(500, 1)
    queue.script = async (events, request) => {
      if (queue.requests.length === 1) {
        await endLeases()
        // what is claimed after a second tells of suspects that wait
        await new Promise((resolve) => setTimeout(resolve, 1300))
        await write(40)
      }
      await new Promise((resolve) => setTimeout(resolve, 4000))
      return acceptAll(events, request)
    }
    let asked = 0
    const clock: Clock = {
      ...systemClock,
      nowMs: () => {
        asked += 1
        if (asked > 50_000) throw new Error('asked for the time again and again')
        return systemClock.nowMs()
      },
    }
    await rig.pass({ publishers: { queue }, clock, passMs: 2500 })
    expect(queue.accepted.length).toBeGreaterThan(0)
    // else it asked as often as it could, and nothing else of the process had its turn
    expect(asked).toBeLessThan(20_000)
  })

  it('leave others their turn, however slow their destination is', async () => {
    const [slow, quick] = [new ScriptedPublisher(), new ScriptedPublisher()]
    await write(12)
    await crash()
    await rig.write(`SELECT 'Made', '{}', NULL, 'quick' FROM generate_series(1, 12)`)
    let doneBefore = Number.NaN
    slow.script = async (events, request) => {
      await new Promise((resolve) => setTimeout(resolve, 900))
      return acceptAll(events, request)
    }
    quick.script = (events, request) => {
      if (quick.requests.length === 1) doneBefore = slow.accepted.length
      return acceptAll(events, request)
    }
    // in another shard, whatever shards the suspects have
    await rig.api.db.query(
      `WITH free AS (SELECT shard FROM outbox_shard WHERE handed = '{}' ORDER BY shard LIMIT 1)
       UPDATE outbox_delivery d SET shard = free.shard FROM free, outbox o WHERE o.id = d.event_id AND o.destination = 'quick'`,
    )
    await rig.drain({ publishers: { slow, quick } })
    expect([slow.accepted.length, quick.accepted.length]).toEqual([12, 12])
    expect(doneBefore).toBeLessThanOrEqual(4)
  })

  it('do not wait for all that is in hand: a relay gives back what it has not sent', async () => {
    const queue = new ScriptedPublisher()
    await write(40)
    const taken = await take(500, 1)
    await rig.api.db.query(
      `INSERT INTO outbox (event_type, payload, ordering_key)
       SELECT 'Chained', '{}', k FROM (SELECT 'key-' || i AS k FROM generate_series(1, 200) i WHERE outbox_key_shard('key-' || i) NOT IN
         (SELECT shard FROM outbox_shard WHERE lease_owner = 'dead') LIMIT 1) one, generate_series(1, 25)`,
    )
    const at = { suspect: 0, last: 0 }
    let chained = 0
    queue.script = async (events, request) => {
      const [event] = events
      if (event!.reclaimedFrom !== null) at.suspect ||= performance.now()
      if (events.some(({ eventType }) => eventType === 'Chained')) {
        await new Promise((resolve) => setTimeout(resolve, 250))
        chained += 1
        if (chained === 1) await endLeases()
        // what is claimed after a second tells of suspects that wait
        if (chained === 6) await write(1)
        at.last = performance.now()
      }
      return acceptAll(events, request)
    }
    await rig.drain({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(40 + 25 + 1)
    expect(taken).toBeGreaterThan(0)
    expect(at.suspect).toBeLessThan(at.last)
    expect(queue.order.violations).toEqual([])
  })

  it('are all served in a pass of profile drain, though an answer says that nothing else is due', async () => {
    const queue = new ScriptedPublisher()
    await write(40)
    await take(500, 1)
    queue.script = async (events, request) => {
      if (queue.requests.length === 1) {
        await endLeases()
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
      return acceptAll(events, request)
    }
    const store: typeof rig.store = {
      ...rig.store,
      claim: async (options, call) => {
        const answer = await rig.store.claim(options, call)
        // it comes when the other batch has ended
        if (answer.events.length === 0 && options.suspectLeaseSeconds === null)
          await new Promise((resolve) => setTimeout(resolve, 1500))
        return answer
      },
    }
    await rig.pass({ publishers: { queue }, store })
    expect(queue.accepted).toHaveLength(40)
  })

  it('are sent although the database is slow: a lease that is nearly used up is renewed', async () => {
    const queue = new ScriptedPublisher()
    await write(3)
    await crash()
    const store: typeof rig.store = {
      ...rig.store,
      start: async (token, id, options) => {
        await new Promise((resolve) => setTimeout(resolve, 2300))
        return rig.store.start(token, id, options)
      },
    }
    // leased for 5 s, of which a request needs 3
    await rig.pass({ publishers: { queue }, store, settings: { requestTimeoutMs: 1000 }, passMs: 15_000 })
    expect(queue.accepted).toHaveLength(3)
  })

  it('fails one that ended three relays, unsent and uncharged, and delivers the others', async () => {
    const queue = new ScriptedPublisher()
    await write(5, `'k' || i`)
    await crash()
    await rig.api.db.query(`UPDATE outbox_delivery SET starts = 3 WHERE seq = (SELECT min(seq) FROM outbox_delivery)`)
    const { telemetry, totals } = await rig.pass({ publishers: { queue } })
    await rig.drain({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(4)
    expect(totals.failed).toBe(1)
    expect(telemetry.sum('CrashedRelays')).toBe(3)
    expect(telemetry.logged('event-suspected')).toMatchObject([{ crashes: 3, lastRelay: 'dead' }])
    expect(telemetry.logged('event-failed')).toMatchObject([{ errorCode: 'CrashedRelays', blocksKey: true }])
    expect(await rig.status(`status = 'failed'`)).toMatchObject([{ attempts: 0, last_error_code: 'CrashedRelays' }])
  })

  it.each(['outbox_claim(', 'outbox_start', 'outbox_settle'])(
    'counts no crash when answers to %s are lost, and delivers each once',
    async (match) => {
      const queue = new ScriptedPublisher()
      await write(8)
      await crash()
      rig.api.inject({ match, fault: { kind: 'drop-reply' }, times: 4 })
      const { telemetry } = await rig.pass({ publishers: { queue } })
      await rig.drain({ publishers: { queue } })
      expect(telemetry.sum('CrashedRelays')).toBe(0)
      expect(queue.accepted).toHaveLength(8)
      expect(await rig.status(`status = 'published'`)).toHaveLength(8)
    },
  )

  it('counts no crash when its time is over with a suspect in hand: the settlement gives it back', async () => {
    const queue = new ScriptedPublisher()
    await write(1)
    await crash()
    const store: typeof rig.store = {
      ...rig.store,
      start: async (token, id, options) => {
        const leased = await rig.store.start(token, id, options)
        // the pass ends between the mark and the request
        await new Promise((resolve) => setTimeout(resolve, 400))
        return leased
      },
    }
    await rig.pass({ publishers: { queue }, store, passMs: 300 })
    expect(queue.requests).toEqual([])
    expect(await starts()).toBe(0)
    await rig.drain({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(1)
  })

  it('counts a crash once, however often the suspect is given back before it is sent', async () => {
    const queue = new ScriptedPublisher()
    await write(1)
    await crash()
    await rig.api.db.query('UPDATE outbox_delivery SET starts = 1')
    const store: typeof rig.store = {
      ...rig.store,
      start: async (token, id, options) => {
        const leased = await rig.store.start(token, id, options)
        await new Promise((resolve) => setTimeout(resolve, 400))
        return leased
      },
    }
    const unsent = await rig.pass({ publishers: { queue }, store, passMs: 300 })
    const sent = await rig.pass({ publishers: { queue } })
    expect(queue.accepted).toHaveLength(1)
    expect([unsent, sent].map(({ telemetry }) => telemetry.sum('CrashedRelays'))).toEqual([0, 1])
  })
})

describe('an event that this program or the database cannot turn into a message', () => {
  it.each<[string, (queue: ScriptedPublisher) => Partial<typeof rig.store>]>([
    [
      'because encoding it throws',
      (queue) => {
        const prepare = queue.prepare.bind(queue)
        queue.prepare = (event: OutboundEvent) => {
          if (event.eventType === 'Bad') throw new TypeError('x is not a function')
          return prepare(event)
        }
        return {}
      },
    ],
    [
      'because sending it throws',
      (queue) => {
        queue.script = (events, request) => {
          if (events.some(({ eventType }) => eventType === 'Bad')) throw new TypeError('x is not a function')
          return acceptAll(events, request)
        }
        return {}
      },
    ],
    [
      'because its payload cannot be read',
      () => ({
        readPayload: () =>
          Promise.reject(
            new SqlError('permanent', 'missing chunk number 0 for toast value', {
              errorName: 'DatabaseErrorException',
              sqlState: 'XX001',
            }),
          ),
      }),
    ],
  ])('%s, is put off and shown, and stops no other', async (_, broken) => {
    const queue = new ScriptedPublisher()
    const store = { ...rig.store, ...broken(queue) }
    await write(20)
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) VALUES ('Bad', $1)`, [JSON.stringify(['x'.repeat(60_000)])])
    await rig.pass({ publishers: { queue }, store, settings: { policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } } })
    expect(queue.accepted).toHaveLength(20)
    expect(await rig.status(`event_type = 'Bad'`)).toMatchObject([
      { status: 'pending', detail: 'backing off', last_error_code: 'EventFault' },
    ])
    await rig.api.db.query('UPDATE outbox_delivery SET retry_at = now()')
    const whole = new ScriptedPublisher()
    await rig.drain({ publishers: { queue: whole } })
    expect(whole.accepted).toHaveLength(1)
  })
})
