import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedEvent } from '../../src/core/event.js'
import type { ClaimRequest, OutboxStore } from '../../src/core/ports.js'
import type { Outcome } from '../../src/core/outcome.js'
import type { NewEventRow } from '../../src/store/postgres/insert-events.js'

/** An implementation of `OutboxStore`, and the world around it. */
export interface StoreUnderTest {
  readonly store: OutboxStore
  /** Commits these events, in this order. */
  readonly write: (events: readonly NewEventRow[]) => Promise<void>
  /** Every lease runs out, as if its time had passed. */
  readonly expireLeases: () => Promise<void>
  /** Removes all events. */
  readonly empty: () => Promise<void>
}

export const claimRequest = (request: Partial<ClaimRequest> = {}): ClaimRequest => ({
  token: randomUUID(),
  owner: 'relay-1',
  maxRows: 500,
  maxBytes: 700_000,
  keyRows: 50,
  maxShards: 16,
  leaseSeconds: 30,
  inFlight: null,
  suspectLeaseSeconds: null,
  ...request,
})

export const newEvent = (event: Partial<NewEventRow> = {}): NewEventRow => ({
  id: randomUUID(),
  eventType: 'OrderCreated',
  payload: '{"orderId": 42}',
  ...event,
})

const publishedTo = (destination: string): Outcome => ({ kind: 'published', destination, messageId: 'm-1' })
const retried = (delayMs: number, error = 'boom'): Outcome => ({
  kind: 'retry',
  delayMs,
  charge: true,
  destination: 'queue',
  errorCode: 'Throttled',
  error,
})
const failed: Outcome = { kind: 'failed', charge: true, block: true, destination: 'queue', errorCode: 'TooBig', error: 'too big' }
const settled = ({ id, attempts }: ClaimedEvent, outcome: Outcome) => ({ id, attempts, outcome })

/** What core relies on, for every implementation. */
export function describeOutboxStore(name: string, { store, write, expireLeases, empty }: StoreUnderTest): void {
  describe(`the outbox store (${name})`, () => {
    beforeEach(empty)

    test('a claim returns each event whole, its payload and headers byte for byte', async () => {
      const whole = newEvent({
        eventVersion: 3,
        aggregateType: 'order',
        aggregateId: 'order-42',
        orderingKey: 'customer-7',
        destination: 'queue',
        headers: '{ "traceparent": "00-ab", "tenant":"é😀" }',
        payload: '{"n": 12345678901234567890.10,  "a":1, "a":2, "nul":"\\u0000", "text":"\\ud83d é😀"}',
      })
      await write([whole])
      const { events, repeated } = await store.claim(claimRequest())
      expect(repeated).toBe(false)
      expect(events).toEqual([
        {
          id: whole.id,
          shard: 12,
          seq: expect.any(BigInt) as bigint,
          eventType: 'OrderCreated',
          eventVersion: 3,
          aggregateType: 'order',
          aggregateId: 'order-42',
          orderingKey: 'customer-7',
          destination: 'queue',
          headers: whole.headers,
          attempts: 0,
          starts: 0,
          replays: 0,
          reclaimedFrom: null,
          released: false,
          createdAtMs: expect.any(Number) as number,
          dueAtMs: expect.any(Number) as number,
          payloadBytes: Buffer.byteLength(whole.payload),
          payload: whole.payload,
        },
      ])
    })

    test('the least that an event needs is a type and a payload', async () => {
      await write([newEvent()])
      const { events } = await store.claim(claimRequest())
      expect(events).toMatchObject([
        { eventVersion: 1, aggregateType: null, aggregateId: null, orderingKey: null, destination: null, headers: null },
      ])
    })

    test('events of a key come in the order in which they were written', async () => {
      const written = Array.from({ length: 40 }, () => newEvent({ orderingKey: 'k' }))
      await write(written)
      const { events } = await store.claim(claimRequest())
      expect(events.map(({ id }) => id)).toEqual(written.map(({ id }) => id))
      const seqs = events.map(({ seq }) => seq)
      expect(seqs).toEqual([...seqs].sort((a, b) => (a < b ? -1 : 1)))
    })

    test('what is claimed is not handed out again, and a repeat of the claim returns it again', async () => {
      await write([newEvent(), newEvent()])
      const request = claimRequest()
      const first = await store.claim(request)
      expect((await store.claim(claimRequest())).events).toEqual([])
      expect((await store.claim(request)).events).toEqual(first.events)
    })

    test('a claim with the same token returns what is new, and nothing that is in flight', async () => {
      await write([newEvent({ orderingKey: 'k' })])
      const request = claimRequest()
      const [first] = (await store.claim(request)).events
      const next = newEvent({ orderingKey: 'k' })
      await write([next])
      const { events } = await store.claim({ ...request, inFlight: [first!.id] })
      expect(events.map(({ id }) => id)).toEqual([next.id])
    })

    test('a settlement says what it changed, and its repeat changes nothing', async () => {
      await write(Array.from({ length: 3 }, () => newEvent()))
      const request = claimRequest()
      const [a, b, c] = (await store.claim(request)).events
      const settlement = {
        token: request.token,
        events: [settled(a!, publishedTo('queue')), settled(b!, retried(60_000)), settled(c!, failed)],
        done: null,
      }
      const shards = new Set([a!.shard, b!.shard, c!.shard]).size
      const counts = { published: 1, retried: 1, held: 0, failed: 1, freed: 0, givenBack: shards, kept: 0, settledBefore: 0 }
      expect(await store.settle(settlement)).toEqual(counts)
      expect(await store.settle(settlement)).toMatchObject({
        published: 0,
        retried: 0,
        failed: 0,
        givenBack: 0,
        settledBefore: shards,
      })
      expect(await store.backlog()).toMatchObject({ depth: 1, backingOff: 1, failed: 1, blockedKeys: 0 })
    })

    test('a settlement gives back the shards that it names', async () => {
      await write(Array.from({ length: 32 }, () => newEvent()))
      const request = claimRequest()
      const { events } = await store.claim(request)
      expect(await store.settle({ token: request.token, events: [], done: [] })).toMatchObject({ givenBack: 0, kept: 16 })
      const third = events.filter(({ shard }) => shard === 3).map((event) => settled(event, publishedTo('bus')))
      expect(await store.settle({ token: request.token, events: third, done: [3] })).toMatchObject({
        published: third.length,
        givenBack: 1,
        kept: 15,
      })
      expect(await store.settle({ token: request.token, events: [], done: null })).toMatchObject({ givenBack: 15, kept: 0 })
    })

    test('a settlement after the lease was lost changes nothing', async () => {
      await write([newEvent()])
      const request = claimRequest()
      const [event] = (await store.claim(request)).events
      await expireLeases()
      const next = await store.claim(claimRequest({ suspectLeaseSeconds: 10 }))
      expect(next.events).toMatchObject([{ id: event!.id, reclaimedFrom: 'relay-1', starts: 0 }])
      expect(
        await store.settle({ token: request.token, events: [settled(event!, publishedTo('queue'))], done: null }),
      ).toMatchObject({ published: 0, givenBack: 0, kept: 0, settledBefore: 0 })
    })

    test('a suspect is handed out alone, to a relay that has nothing else in hand; a start without an outcome is told', async () => {
      await write([newEvent({ orderingKey: 'k' }), newEvent({ orderingKey: 'k' })])
      const crashed = await store.claim(claimRequest())
      await expireLeases()
      expect(await store.claim(claimRequest())).toMatchObject({ events: [] })
      const ids: string[] = []
      for (const [index, starts] of [0, 1].entries()) {
        const request = claimRequest({ owner: `heir-${index}`, suspectLeaseSeconds: 10 })
        const { events } = await store.claim(request)
        expect(events).toMatchObject([{ starts, reclaimedFrom: index === 0 ? 'relay-1' : 'heir-0' }])
        ids.push(events[0]!.id)
        expect(await store.start(request.token, events[0]!.id)).toBe(true)
        expect(await store.start(request.token, events[0]!.id)).toBe(true)
        expect(await store.start(randomUUID(), events[0]!.id)).toBe(false)
        await expireLeases()
      }
      expect(ids).toEqual([crashed.events[0]!.id, crashed.events[0]!.id])
    })

    test('a retry comes back with its attempts, and not before its time', async () => {
      await write([newEvent()])
      const request = claimRequest()
      const [event] = (await store.claim(request)).events
      await store.settle({ token: request.token, events: [settled(event!, retried(0))], done: null })
      const again = claimRequest()
      expect((await store.claim(again)).events).toMatchObject([{ id: event!.id, attempts: 1 }])
      await store.settle({ token: again.token, events: [settled({ ...event!, attempts: 1 }, retried(60_000))], done: null })
      expect((await store.claim(claimRequest())).events).toEqual([])
    })

    test('error texts with U+0000 and lone surrogates, and long ones, are stored without what no database keeps', async () => {
      await write([newEvent(), newEvent()])
      const request = claimRequest()
      const [a, b] = (await store.claim(request)).events
      const events = [
        settled(a!, retried(0, `a\u0000b\ud83dc😀${'x'.repeat(5_000)}`)),
        settled(b!, { kind: 'published', destination: 'queue', messageId: 'm\u0000\udc00' }),
      ]
      expect(await store.settle({ token: request.token, events, done: null })).toMatchObject({ published: 1, retried: 1 })
    })

    test('a renewal answers how many of the shards are still leased', async () => {
      await write(Array.from({ length: 32 }, () => newEvent()))
      const request = claimRequest()
      await store.claim(request)
      expect(await store.renew(request.token, [1, 2, 3], 30)).toBe(3)
      await store.settle({ token: request.token, events: [], done: [2] })
      expect(await store.renew(request.token, [1, 2, 3], 30)).toBe(2)
      expect(await store.renew(randomUUID(), [1, 2, 3], 30)).toBe(0)
    })

    test.each([
      ['of ASCII', 'x'],
      ['of 4-byte characters', '😀'],
      ['of quotes, which JSON doubles', '\\"'],
    ])('a payload of 1 MB %s does not come with the claim, and is read whole', async (_, character) => {
      const payload = `["${character.repeat(1_048_000 / Buffer.byteLength(character))}"]`
      await write([newEvent({ payload })])
      const [event] = (await store.claim(claimRequest())).events
      expect(event).toMatchObject({ payload: null, payloadBytes: Buffer.byteLength(payload) })
      expect((await store.readPayload(event!.id)) === payload).toBe(true)
    })

    test('the payload of an event that is gone is null', async () => {
      expect(await store.readPayload(randomUUID())).toBeNull()
    })

    test('the backlog is 0 only if nothing is overdue', async () => {
      expect(await store.backlog()).toEqual({
        ageSeconds: 0,
        depth: 0,
        scheduled: 0,
        backingOff: 0,
        held: 0,
        failed: 0,
        blockedKeys: 0,
        oldestFailedSeconds: 0,
        leasedShards: 0,
        openCircuits: 0,
        misconfiguredDestinations: 0,
      })
      await write([newEvent(), newEvent({ availableAt: '2100-01-01T00:00:00.000Z' })])
      const backlog = await store.backlog()
      expect(backlog).toMatchObject({ depth: 1, scheduled: 1 })
      expect(backlog.ageSeconds).toBeGreaterThan(0)
      expect(backlog.ageSeconds).toBeLessThan(30)
    })

    test('cleanup deletes what is delivered and past retention; failed events are discarded first', async () => {
      await write([newEvent(), newEvent(), newEvent()])
      const request = claimRequest()
      const [a, b] = (await store.claim(request)).events
      await store.settle({
        token: request.token,
        events: [settled(a!, publishedTo('queue')), settled(b!, failed)],
        done: null,
      })
      expect(await store.cleanup(3600, 100)).toBe(0)
      expect(await store.cleanup(0, 100)).toBe(1)
      expect(await store.expireFailed(3600, 100)).toBe(0)
      expect(await store.expireFailed(0, 100)).toBe(1)
      expect(await store.cleanup(0, 100)).toBe(1)
      expect(await store.backlog()).toMatchObject({ depth: 1, failed: 0 })
    })
  })
}
