import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboundEvent } from '../../src/core/event.js'
import type { PublishAnswer } from '../../src/core/outcome.js'
import { relayRig } from '../support/relay.js'
import { accepted, acceptAll, fault, perEntry, ScriptedPublisher, type Script } from '../support/scripted-publisher.js'

const rig = await relayRig()
// counts the row updates of each event, whoever makes them
await rig.api.db.query(`
  CREATE TABLE updates (event_id uuid PRIMARY KEY, updates integer NOT NULL);
  CREATE FUNCTION count_update() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO updates VALUES (NEW.event_id, 1) ON CONFLICT (event_id) DO UPDATE SET updates = updates.updates + 1;
    RETURN NULL;
  END $$;
  CREATE TRIGGER count_update AFTER UPDATE ON outbox_delivery FOR EACH ROW EXECUTE FUNCTION count_update()`)
beforeEach(async () => {
  await rig.api.db.query('TRUNCATE updates')
  await rig.reset()
})

const write = (count: number, destination: string, key = 'NULL') =>
  rig.write(`SELECT 'Made', '{"i": ' || i || '}', ${key}, '${destination}' FROM generate_series(1, ${count}) i`)
const published = async () => (await rig.status(`status = 'published'`)).length
const circuit = async (destination = 'a') => {
  const [row] = await rig.api.db.query(
    `SELECT state, failures, configuration, error_code, error, probe_event FROM outbox_circuit WHERE destination = '${destination}'`,
  )
  return row as { readonly state: string; readonly failures: number; readonly probe_event: string | null } | undefined
}
const down: Script = () => fault()
const wait = { timeout: 60_000 }

describe('the circuit of a destination', () => {
  it('opens after three requests in a row; its events are put aside without charge, others go on, and all come back in order', async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = down
    await write(500, 'a', `'key-' || i % 90`)
    const stop = rig.pass({ publishers: { a, b }, settings: { profile: 'continuous' }, passMs: 60_000 })
    await vi.waitFor(async () => expect(await circuit()).toMatchObject({ state: 'open', error_code: 'ServiceUnavailable' }), wait)
    await write(300, 'b')
    await vi.waitFor(() => expect(b.accepted).toHaveLength(300), wait)
    await vi.waitFor(async () => expect((await circuit())?.failures).toBeGreaterThan(4), wait)
    expect((await rig.status(`destination = 'a' AND attempts > 0`)).length).toBe(0)
    expect((await rig.status(`detail = 'held by destination:a'`)).length).toBeGreaterThan(80)

    a.script = acceptAll
    await vi.waitFor(async () => expect(await published()).toBe(800), wait)
    expect(await circuit()).toMatchObject({ state: 'closed', failures: 0, probe_event: null })
    expect(a.order.violations).toEqual([])
    expect(await rig.status('attempts > 1')).toEqual([])
    const probes = a.requests.filter((events) => events.length === 1).length
    const [{ most, total } = { most: 0, total: 0 }] = await rig.api.db.query<{ most: number; total: number }>(
      `SELECT CAST(max(updates) AS integer) AS most, CAST(sum(updates) AS integer) AS total FROM updates`,
    )
    expect(total).toBeLessThanOrEqual(2 * 500 + 2 * probes)
    expect(most).toBeLessThanOrEqual(2 + 2 * probes)
    rig.api.inject({ match: 'outbox_claim', fault: { kind: 'error', name: 'AccessDeniedException', message: 'end' }, times: 9 })
    await stop.catch(() => undefined)
  }, 120_000)

  it.each([
    [
      'access is denied',
      {
        ...{ ...fault('AccessDeniedException') },
        configuration: true,
        reason: 'User: arn:aws:sts::1:x is not authorized to perform: sqs:SendMessage',
      },
    ],
    ['a request times out', { ...fault('TimeoutError'), timedOut: true }],
  ] as const)('opens at once when %s', async (_, answer) => {
    const a = new ScriptedPublisher()
    a.script = () => answer
    await write(50, 'a')
    const { telemetry, totals } = await rig.pass({
      publishers: { a },
      settings: { requestsInFlight: 1, policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } },
    })
    expect(a.requests).toHaveLength(1)
    expect(totals).toMatchObject({ held: 49, retried: 1, published: 0 })
    const configuration = answer.configuration
    expect(await circuit()).toMatchObject({ state: 'open', failures: 1, configuration, error_code: answer.code })
    expect(telemetry.logged('circuit-opened')).toMatchObject([
      { destination: 'a', configuration, principal: configuration ? 'arn:aws:sts::1:x' : null, resource: 'scripted' },
    ])
    expect(await rig.store.backlog()).toMatchObject({
      openCircuits: 1,
      misconfiguredDestinations: configuration ? 1 : 0,
      held: 49,
    })
  })

  it('is shared: another relay sends nothing while it is open, and one probe alone when the cool-down is over', async () => {
    const [first, second] = [new ScriptedPublisher(), new ScriptedPublisher()]
    first.script = () => ({ ...fault(), configuration: true })
    await write(40, 'a', `'key-' || i % 20`)
    const slowly = { policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } }
    await rig.pass({ publishers: { a: first }, settings: slowly })
    await write(40, 'a', `'key-' || i % 20`)
    await rig.pass({ publishers: { a: second }, settings: slowly })
    expect(second.requests).toEqual([])

    // the cool-down is over
    await rig.api.db.query(`UPDATE outbox_circuit SET retry_at = clock_timestamp();
                            UPDATE outbox_delivery SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL`)
    let release: (answer: PublishAnswer) => void = () => undefined
    second.script = () => new Promise((resolve) => (release = resolve))
    const probing = rig.pass({ publishers: { a: second } })
    await vi.waitFor(() => expect(second.inFlight).toBe(1), wait)
    const third = new ScriptedPublisher()
    await rig.pass({ publishers: { a: third } })
    expect(third.requests).toEqual([])
    expect(second.requests.map((events) => events.length)).toEqual([1])
    const [probe] = second.requests[0] ?? []
    expect((await circuit())?.probe_event).toBe(probe?.id)
    second.script = acceptAll
    release({ kind: 'answered', entries: [accepted(probe!)] })
    await probing
    await rig.drain({ publishers: { a: second } })
    expect(await published()).toBe(80)
    expect(second.order.violations).toEqual([])
  }, 120_000)

  it('tries another event after each probe that failed, so that one which the destination does not bear cannot keep it open', async () => {
    const a = new ScriptedPublisher()
    let poison: string | undefined
    a.script = (events) => {
      poison ??= events[0]!.id
      return events.some(({ id }) => id === poison) ? fault('InternalError') : acceptAll(events, 0)
    }
    await write(1, 'a')
    const settings = { policy: { maxAttempts: 10, baseMs: 50, capMs: 100 } }
    await vi.waitFor(async () => {
      await rig.pass({ publishers: { a }, settings })
      expect(await circuit()).toMatchObject({ state: 'open' })
    }, wait)
    await write(30, 'a')
    await vi.waitFor(async () => {
      await rig.pass({ publishers: { a }, settings })
      expect(a.accepted).toHaveLength(30)
    }, wait)
    expect(await rig.status('attempts > 1')).toEqual([])
  }, 120_000)

  it('does not open for one event that is refused alone in an answer, time and again: that one backs off by itself', async () => {
    const a = new ScriptedPublisher()
    a.script = perEntry(({ payload }) =>
      payload === '{}' ? { kind: 'refused', fault: 'transient', code: 'InternalError', reason: 'later' } : undefined,
    )
    await rig.write(`SELECT 'Made', '{}', NULL, 'a'`)
    const settings = { policy: { maxAttempts: 10, baseMs: 1, capMs: 10 } }
    await vi.waitFor(async () => {
      await rig.pass({ publishers: { a }, settings })
      expect(a.requests.length).toBeGreaterThan(5)
    }, wait)
    expect(await circuit()).toBeUndefined()
  })

  it('finds a new probe when the one it had was delivered by a relay that died before it could say so', async () => {
    const a = new ScriptedPublisher()
    a.script = () => ({ ...fault(), configuration: true })
    await write(20, 'a')
    await rig.pass({ publishers: { a } })
    await rig.api.db.query(`DELETE FROM outbox_delivery WHERE event_id = (SELECT probe_event FROM outbox_circuit)`)
    a.script = acceptAll
    await vi.waitFor(async () => {
      await rig.drain({ publishers: { a } })
      expect((await circuit())?.state).toBe('closed')
    }, wait)
    await rig.drain({ publishers: { a } })
    expect(new Set(a.acceptedIds()).size).toBe(19)
  }, 120_000)

  it('closes when nothing of its destination is left in the queue', async () => {
    const a = new ScriptedPublisher()
    a.script = () => ({ ...fault(), configuration: true })
    await write(1, 'a')
    await rig.pass({ publishers: { a } })
    await rig.api.db.query(`TRUNCATE outbox_delivery; UPDATE outbox_circuit SET retry_at = clock_timestamp()`)
    await rig.pass({ publishers: { a } })
    expect((await circuit())?.state).toBe('closed')
  })

  it('closes when its destination is not configured any more, and its events are routed anew', async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = () => ({ ...fault(), configuration: true })
    await rig.write(`SELECT 'Made', '{}', NULL, NULL FROM generate_series(1, 30)`)
    const slowly = { policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } }
    await rig.pass({ publishers: { a }, defaultDestination: 'a', settings: slowly })
    // while it cools down, a relay of a newer configuration may know it
    await rig.pass({ publishers: { b }, defaultDestination: 'b' })
    expect((await circuit())?.state).toBe('open')
    await rig.api.db.query(`UPDATE outbox_circuit SET retry_at = clock_timestamp()`)
    await rig.pass({ publishers: { b }, defaultDestination: 'b' })
    // all but the one that waits out its cool-down
    expect(b.accepted).toHaveLength(29)
    expect((await circuit())?.state).toBe('closed')
  })

  it('brings back no more a second than configured, whichever relays ask', async () => {
    const a = new ScriptedPublisher()
    a.script = () => ({ ...fault(), configuration: true })
    await write(300, 'a')
    await rig.pass({ publishers: { a } })
    a.script = acceptAll
    const settings = { profile: 'continuous', releasePerSecond: 50 } as const
    const startedMs = Date.now()
    await Promise.all([
      rig.pass({ publishers: { a }, passMs: 3000, settings }),
      rig.pass({ publishers: { a }, passMs: 3000, settings }),
    ])
    const seconds = (Date.now() - startedMs) / 1000
    // 50 at once, 50 each second; and the probe
    expect(a.accepted.length).toBeGreaterThan(50)
    expect(a.accepted.length).toBeLessThanOrEqual(50 * (1 + seconds) + 1)
    await rig.drain({ publishers: { a } })
    expect(await published()).toBe(300)
  }, 120_000)
})

describe('the database', () => {
  const lookups = () => rig.api.requests.filter(({ sql }) => sql?.includes('outbox_circuits(')).length
  const slowly = { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 }

  it('is not asked about a circuit that is open more often than is of use, nor while events come back', async () => {
    const a = new ScriptedPublisher()
    a.script = () => ({ ...fault(), configuration: true })
    await write(200, 'a')
    rig.api.requests.length = 0
    await rig.pass({ publishers: { a }, passMs: 2500, settings: { profile: 'continuous', policy: slowly } })
    expect(lookups()).toBeLessThanOrEqual(3)

    await rig.api.db.query(
      `UPDATE outbox_circuit SET state = 'closed', failures = 0, opened_at = NULL, retry_at = NULL, probe_event = NULL`,
    )
    a.script = acceptAll
    rig.api.requests.length = 0
    await rig.pass({ publishers: { a }, passMs: 3000, settings: { profile: 'continuous', releasePerSecond: 1 } })
    expect(lookups()).toBeGreaterThan(2)
    expect(lookups()).toBeLessThanOrEqual(9)
  })

  it('that refuses to answer ends the pass, after what is in flight, and everything is given back', async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = () => ({ ...fault(), configuration: true })
    await write(20, 'a')
    await rig.pass({ publishers: { a, b }, settings: { policy: slowly } })
    await rig.api.db.query(
      `UPDATE outbox_circuit SET state = 'closed', failures = 0, opened_at = NULL, retry_at = NULL, probe_event = NULL`,
    )
    let answer: () => void = () => undefined
    b.script = (events) => new Promise((resolve) => (answer = () => resolve({ kind: 'answered', entries: events.map(accepted) })))
    await write(1, 'b')
    const ended = rig.pass({ publishers: { a, b }, settings: { releasePerSecond: 1 } }).then(
      () => 'returned',
      (error: unknown) => [error, b.inFlight],
    )
    await vi.waitFor(() => expect(b.inFlight).toBe(1), wait)
    rig.api.inject({ match: 'outbox_circuits', fault: { kind: 'error', name: 'AccessDeniedException', message: 'no' } })
    rig.api.requests.length = 0
    await vi.waitFor(() => expect(lookups()).toBeGreaterThan(0), wait)
    await new Promise((resolve) => setTimeout(resolve, 300))
    answer()
    expect(await ended).toMatchObject([{ code: 'Sql', kind: 'permanent' }, 0])
    expect(await rig.api.db.query('SELECT 1 FROM outbox_shard WHERE lease_token IS NOT NULL')).toEqual([])
  })
})

describe('a destination that takes less than there is', () => {
  /** Answers each request after so long. */
  const after =
    (ms: number): Script =>
    (events: readonly OutboundEvent[]) =>
      new Promise((resolve) => setTimeout(() => resolve({ kind: 'answered', entries: events.map(accepted) }), ms))

  it('does not slow another one, whatever waits for it; what it cannot take soon is put aside once, and comes back', async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = after(300)
    await write(2000, 'a')
    const pass = rig.pass({ publishers: { a, b }, passMs: 60_000, settings: { requestsInFlight: 8 } })
    await vi.waitFor(() => expect(a.inFlight).toBeGreaterThan(0), wait)
    await write(50, 'b')
    await vi.waitFor(() => expect(b.accepted).toHaveLength(50), wait)
    // those of b came last, and are not behind those of a
    expect(a.accepted.length).toBeLessThan(1500)
    await pass
    await rig.drain({ publishers: { a, b } })
    expect(await published()).toBe(2050)
    expect(await circuit()).toMatchObject({ state: 'closed' })
    const [{ updates } = { updates: 0 }] = await rig.api.db.query<{ updates: number }>(
      `SELECT CAST(count(*) FILTER (WHERE updates > 2) AS integer) AS updates FROM updates`,
    )
    expect(updates).toBe(0)
  }, 120_000)

  it('gets in one pass of profile drain all that was put aside in it', async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = after(600)
    await write(200, 'a')
    const { totals } = await rig.pass({ publishers: { a, b }, passMs: 60_000 })
    expect(totals.held).toBeGreaterThan(0)
    expect(a.accepted).toHaveLength(200)
  }, 120_000)

  it('gets what was put aside before what is new, however much of that comes', async () => {
    const [a, b] = [new ScriptedPublisher(), new ScriptedPublisher()]
    a.script = after(500)
    await write(300, 'a')
    const settings = { profile: 'continuous', requestsInFlight: 4 } as const
    let over = false
    const pass = rig.pass({ publishers: { a, b }, passMs: 90_000, settings })
    await vi.waitFor(async () => expect((await rig.status(`detail = 'held by destination:a'`)).length).toBeGreaterThan(100), wait)
    const old = new Set((await rig.status(`detail = 'held by destination:a'`)).map(({ id }) => id))
    const flood = (async () => {
      while (!over) {
        await write(60, 'a')
        await new Promise((resolve) => setTimeout(resolve, 400))
      }
    })()
    await vi.waitFor(() => expect(a.accepted.filter(({ id }) => old.has(id)).length).toBe(old.size), { timeout: 80_000 })
    over = true
    await flood
    rig.api.inject({ match: 'outbox_claim', fault: { kind: 'error', name: 'AccessDeniedException', message: 'end' }, times: 99 })
    await pass.catch(() => undefined)
  }, 150_000)

  it('is left alone where it is the only one: nothing is put aside', async () => {
    const a = new ScriptedPublisher()
    a.script = after(300)
    await write(600, 'a')
    const { totals } = await rig.pass({ publishers: { a }, passMs: 60_000 })
    expect(totals).toMatchObject({ published: 600, held: 0 })
  }, 120_000)
})
