import { describe, expect, it } from 'vitest'
import { id, operatorRig } from '../support/operator-rig.js'

const { run, json, faults, relay, write, failed, statuses, audit, take, waiting, query } = operatorRig()

describe('a redrive', () => {
  it('tried with --dry-run tells how many and which, and changes nothing', async () => {
    await failed([1], [2, { type: 'RefusedToo' }], [3, { key: 'k' }])
    expect(await json('redrive', '--all', '--dry-run')).toMatchObject({ events: 3, keyed: 1, sample: [id(1), id(2), id(3)] })
    expect(await json('redrive', '--type', 'Refused', '--dry-run')).toMatchObject({ events: 2 })
    expect(await json('redrive', '--event-type', 'Refused', '--limit', '1', '--dry-run')).toMatchObject({ events: 1 })
    const { out } = await run('redrive', '--key', 'k', '--dry-run')
    expect(out).toBe(`redrive would take 1 failed event, 1 with an ordering key\n${id(3)}\n`)
    expect(await statuses()).toEqual({ 1: 'failed', 2: 'failed', 3: 'failed' })
    expect(await audit()).toEqual([])
  })

  it('takes what matches all of its filter', async () => {
    await failed([1], [2, { type: 'RefusedToo', key: 'k' }])
    const hour = 3_600_000
    for (const [filter, events] of [
      [['--id', id(1), '--id', id(2)], 2],
      [['--id', id(1), '--key', 'k'], 0],
      [['--key', 'k'], 1],
      [['--error-code', 'InvalidMessageContents'], 2],
      [['--error-code', 'Other'], 0],
      [['--destination', 'queue'], 2],
      [['--destination', 'bus'], 0],
      [['--from', '2026-01-01T00:00:00+01:00'], 2],
      [['--from', String(Date.now() + hour)], 0],
      [['--until', '2026-01-01T00:00:00Z'], 0],
      [['--until', new Date(Date.now() + hour).toISOString(), '--from', String(Date.now() - hour)], 2],
    ] as const) {
      expect([filter, (await json('redrive', ...filter, '--dry-run'))['events']]).toEqual([filter, events])
    }
  })

  it('sends the event again with the same id, once, and the audit names who, which filter, why and how many', async () => {
    await failed([1], [2, { type: 'RefusedToo' }])
    const result = await json('redrive', '--type', 'Refused', '--reason', 'the queue takes it now')
    const actor = 'arn:aws:iam::000000000000:user/ann'
    expect(result).toMatchObject({ action: 'redrive', actor, events: 1, batches: 1, complete: true, unresolved: null })
    expect(await audit()).toEqual([
      {
        actor,
        action: 'redrive',
        reason: 'the queue takes it now',
        filter: {
          eventType: 'Refused',
          untilMs: expect.any(Number) as number,
          request: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        },
        events: 1,
        event_ids: [id(1)],
      },
    ])
    expect((await run('redrive', '--type', 'Refused', '--reason', 'again')).out).toBe('no events redriven\n')
    await relay()
    expect(await take('queue', 1)).toEqual([id(1)])
    expect(await waiting('queue')).toBe(0)
    expect(await statuses()).toEqual({ 1: 'published', 2: 'failed' })
  })

  it('takes no more than its limit, the oldest first', async () => {
    await failed([1])
    await failed([2], [3])
    expect(await json('redrive', '--all', '--limit', '2', '--reason', 'a few')).toMatchObject({ events: 2 })
    expect(await statuses()).toEqual({ 1: 'pending', 2: 'pending', 3: 'failed' })
  })

  it('with a rate takes so many in a batch, each with its audit row', async () => {
    await failed([1], [2], [3])
    expect(await json('redrive', '--all', '--rate', '2', '--limit', '3', '--reason', 'slowly')).toMatchObject({
      events: 3,
      batches: 2,
    })
    expect((await audit()).map(({ events }) => events)).toEqual([2, 1])
  })

  it('does not take again what fails again while it runs', async () => {
    await failed([1])
    await query(
      `CREATE FUNCTION fail_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.lane := 3; NEW.failed_at := clock_timestamp() + interval '1 second'; RETURN NEW; END $$`,
    )
    await query('CREATE TRIGGER fail_again BEFORE UPDATE ON outbox_delivery FOR EACH ROW EXECUTE FUNCTION fail_again()')
    try {
      expect(await json('redrive', '--all', '--reason', 'hopeless')).toMatchObject({ events: 1 })
    } finally {
      await query('DROP FUNCTION fail_again CASCADE')
    }
  })
})

describe('a lost reply', () => {
  const lost = (match: string) => ({ service: 'rds-data', match, times: 2, fault: { kind: 'drop-reply' } })

  it.each(['redrive', 'discard', 'release'] as const)(
    'of a %s is resolved by its request: done and counted once',
    async (action) => {
      await failed([1, { key: 'a' }], [2, { key: 'b' }])
      await faults(lost('outbox_operate'))
      const yes = action === 'discard' ? ['--yes'] : []
      expect(await json(action, '--all', '--limit', '1', '--reason', 'r', ...yes)).toMatchObject({ events: 1, batches: 1 })
      expect(await audit()).toMatchObject([{ action, events: 1, event_ids: [id(1)] }])
    },
  )

  it('to the end is said, with the request by which the audit shows what became of it', async () => {
    await failed([1])
    await faults({ ...lost('outbox_operate'), times: 1000 })
    const { code, out, err } = await run('redrive', '--all', '--reason', 'r', '--timeout', '1', '--json')
    expect(code).toBe(1)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    const result = JSON.parse(out) as Record<string, unknown>
    expect(result).toMatchObject({ events: 0, complete: false })
    expect(await audit()).toMatchObject([{ filter: { request: result['unresolved'] } }])
  })

  it('of the caller: nobody acts whom STS does not know', async () => {
    await failed([1])
    await faults({
      service: 'sts',
      fault: { kind: 'error', name: 'InvalidClientTokenId', status: 403, message: 'The token is invalid' },
    })
    const { code, err } = await run('redrive', '--all', '--reason', 'r')
    expect({ code, err }).toEqual({ code: 1, err: 'outbox: The token is invalid\n' })
    expect(await statuses()).toEqual({ 1: 'failed' })
  })
})

describe('a discard', () => {
  it('gives events up for good, and lets their key go on in order', async () => {
    await failed([1, { key: 'k' }])
    await write(2, { key: 'k' })
    await write(3, { key: 'k' })
    await relay()
    expect(await statuses()).toEqual({ 1: 'failed', 2: 'pending', 3: 'pending' })
    expect(await json('discard', '--key', 'k', '--reason', 'never', '--yes')).toMatchObject({ events: 1 })
    await relay()
    expect(await take('queue', 2)).toEqual([id(2), id(3)])
    expect(await statuses()).toEqual({ 1: 'discarded', 2: 'published', 3: 'published' })
    expect(await json('redrive', '--all', '--reason', 'too late')).toMatchObject({ events: 0 })
    expect(await json('replay', '--id', id(1), '--reason', 'too late')).toMatchObject({ events: 0 })
    await relay()
    expect(await waiting('queue')).toBe(0)
  })
})

describe('a release', () => {
  it('lets a blocked key go on in order, and the event stays failed', async () => {
    await failed([1, { key: 'k' }], [4, { key: 'other' }])
    await write(2, { key: 'k' })
    await write(3, { key: 'k' })
    await relay()
    const { keys } = (await json('list', '--blocked')) as { keys: Record<string, unknown>[] }
    expect(keys).toMatchObject([
      { orderingKey: 'k', eventId: id(1), eventType: 'Refused', lastErrorCode: 'InvalidMessageContents', waiting: 2 },
      { orderingKey: 'other', eventId: id(4), waiting: 0 },
    ])
    expect((await run('list', '--blocked', '--key', 'k')).out).toMatch(new RegExp(`^k +2  ${id(1)}  Refused `, 'm'))
    expect((await run('list', '--blocked', '--limit', '1')).err).toBe(
      'outbox: there are more; the 1 that have waited longest are shown (--limit)\n',
    )
    expect(await json('release', '--key', 'k', '--reason', 'order does not matter')).toMatchObject({ events: 1 })
    expect(await json('release', '--all', '--dry-run')).toMatchObject({ events: 1, sample: [id(4)] })
    await relay()
    expect(await take('queue', 2)).toEqual([id(2), id(3)])
    expect(await statuses()).toEqual({ 1: 'failed', 2: 'published', 3: 'published', 4: 'failed' })
    expect(await json('list', '--blocked', '--key', 'k')).toMatchObject({ keys: [] })
    expect((await run('list', '--blocked', '--key', 'k')).out).toBe('no blocked keys\n')
  })
})

describe('a replay', () => {
  const publish = async (...events: readonly [nth: number, options?: Parameters<typeof write>[1]][]) => {
    for (const [nth, options] of events) await write(nth, options)
    await relay()
  }

  it.each(['queue', 'fifo'])('arrives once more with the same id: %s', async (to) => {
    await publish([1, { to }], [2, { to, type: 'Other' }])
    expect(await take(to, 2)).toEqual([id(1), id(2)])
    for (const replays of [1, 2]) {
      expect(await json('replay', '--id', id(1), '--reason', 'the consumer lost it')).toMatchObject({ events: 1, batches: 1 })
      await relay()
      expect(await take(to, 1)).toEqual([id(1)])
      expect(await waiting(to)).toBe(0)
      expect(await json('show', id(1))).toMatchObject({ event: { status: 'published', replays } })
    }
    expect(await audit()).toMatchObject([
      {
        action: 'replay',
        actor: 'arn:aws:iam::000000000000:user/ann',
        reason: 'the consumer lost it',
        events: 1,
        event_ids: [id(1)],
      },
      { action: 'replay', events: 1 },
    ])
  })

  it('of a key goes behind what is there now, with a new place in the queue', async () => {
    // other ids: the queue remembers those of the test before for five minutes
    await publish([11, { key: 'k', to: 'fifo' }])
    await write(12, { key: 'k', to: 'fifo' })
    await json('replay', '--key', 'k', '--reason', 'read model rebuilt', '--yes')
    await relay()
    expect(await take('fifo', 3)).toEqual([id(11), id(12), id(11)])
  })

  it('of events with an ordering key needs a yes, and without it takes none of them, even one published meanwhile', async () => {
    await publish([1], [2, { key: 'k' }])
    const { code, err } = await run('replay', '--all', '--reason', 'r')
    expect(code).toBe(2)
    expect(err).toBe(
      'outbox: --yes is not set. It must be, because some of these events have an ordering key, and a replay brings them after newer ones of it\n',
    )
    expect(await statuses()).toEqual({ 1: 'published', 2: 'published' })
    expect(await json('replay', '--id', id(1), '--reason', 'r')).toMatchObject({ events: 1 })
    expect(await audit()).toMatchObject([{ filter: { keyed: false } }])
    const { rows } = await query("SELECT * FROM outbox_choose('replay', '{\"keyed\": false}', 10)")
    expect(rows).toEqual([])
    await relay()
    expect(await json('replay', '--all', '--reason', 'r', '--yes')).toMatchObject({ events: 2 })
  })

  it('tried with --dry-run changes nothing; it takes what matches all of its filter, and its limit', async () => {
    await publish([1], [2, { type: 'Other', to: 'fifo' }], [3])
    for (const [filter, events] of [
      [['--all'], 3],
      [['--all', '--limit', '2'], 2],
      [['--id', id(2)], 1],
      [['--event-type', 'Other'], 1],
      [['--destination', 'queue'], 2],
      [['--from', String(Date.now() + 3_600_000)], 0],
      [['--until', '2026-01-01T00:00:00Z'], 0],
    ] as const) {
      expect([filter, (await json('replay', ...filter, '--dry-run'))['events']]).toEqual([filter, events])
    }
    expect(await statuses()).toEqual({ 1: 'published', 2: 'published', 3: 'published' })
    expect(await audit()).toEqual([])
    expect(await json('replay', '--all', '--limit', '2', '--reason', 'two')).toMatchObject({ events: 2 })
    expect(await statuses()).toEqual({ 1: 'pending', 2: 'pending', 3: 'published' })
  })

  it('whose reply was lost is done once, even if the event was published again before the repeat', async () => {
    await publish([1])
    await take('queue', 1)
    const call = () =>
      query<{ events: string }>(`SELECT outbox_replay('{"request": "${id(9)}"}', 10, false, 'ann', 'r') AS events`)
    expect((await call()).rows).toEqual([{ events: '1' }])
    await relay()
    expect((await call()).rows).toEqual([{ events: '1' }])
    await faults({ service: 'rds-data', match: 'outbox_replay', times: 2, fault: { kind: 'drop-reply' } })
    expect(await json('replay', '--all', '--reason', 'r')).toMatchObject({ events: 1, batches: 1 })
    expect(await audit()).toHaveLength(2)
    await relay()
    expect(await json('show', id(1))).toMatchObject({ event: { replays: 2 } })
  })
})
