import { describe, expect, it } from 'vitest'
import { Batch, type Prepared } from '../../src/core/batch.js'
import type { ClaimedEvent } from '../../src/core/event.js'
import type { Outcome } from '../../src/core/outcome.js'
import { outboundEvent } from '../support/outbound-event.js'

const event = (id: string, orderingKey: string | null = null, changes: Partial<ClaimedEvent> = {}): ClaimedEvent =>
  outboundEvent({ id, orderingKey, ...(changes as object) })
const published: Outcome = { kind: 'published', destination: 'a', messageId: 'm' }
const retry: Outcome = { kind: 'retry', delayMs: 1, charge: false, destination: 'a', errorCode: 'x', error: 'x' }
const ready = (of: ClaimedEvent): Prepared => ({
  kind: 'ready',
  destination: of.destination ?? 'a',
  onFailure: 'block',
  message: { eventId: of.id, bytes: 1, entry: null },
})
const ids = (batch: Batch, destination = 'a') => batch.ready(destination).map((entry) => entry.event.id)

function send(batch: Batch, destination = 'a'): ClaimedEvent[] {
  const entries = batch.ready(destination)
  batch.take(destination, entries)
  return entries.map((entry) => entry.event)
}

describe('a batch', () => {
  it('makes events without a key ready at once, in order', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1'), event('2'), event('3')])
    expect(ids(batch)).toEqual(['1', '2', '3'])
  })

  it('makes the next event of a key ready only when the one before is published, whatever their destinations', () => {
    const batch = new Batch('t', ready)
    batch.add([
      event('1', 'k', { destination: 'a' }),
      event('2', 'k', { destination: 'b' }),
      event('3', 'k', { destination: 'a' }),
    ])
    expect([ids(batch, 'a'), ids(batch, 'b')]).toEqual([['1'], []])
    const [first] = send(batch, 'a')
    expect([ids(batch, 'a'), ids(batch, 'b')]).toEqual([[], []])
    batch.decide(first!, published)
    expect([ids(batch, 'a'), ids(batch, 'b')]).toEqual([[], ['2']])
  })

  it('leaves the rest of a key when one of it is not published, and keeps it in hand until that is settled', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1', 'k'), event('2', 'k')])
    const [first] = send(batch)
    batch.decide(first!, retry)
    expect(batch.readyCount).toBe(0)
    expect(batch.outcomes().map(({ id }) => id)).toEqual(['1'])
    expect(batch.idsInHand()).toEqual(['1', '2'])
    batch.settled(batch.outcomes())
    expect(batch.idsInHand()).toEqual([])
  })

  it('does not send what is claimed of a key whose earlier event was not published and is not settled yet', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1', 'k')])
    const [first] = send(batch)
    batch.decide(first!, retry)
    const beforeSettling = batch.outcomes()
    batch.add([event('2', 'k')])
    expect(batch.readyCount).toBe(0)
    batch.settled(beforeSettling)
    expect(batch.idsInHand()).toEqual([])
    batch.add([event('3', 'k')])
    expect(ids(batch)).toEqual(['3'])
  })

  it('stops a key whose first event is decided before it is sent', () => {
    const batch = new Batch('t', (of) => (of.id === '1' ? { kind: 'decided', outcome: retry } : ready(of)))
    batch.add([event('1', 'k'), event('2', 'k')])
    expect(batch.readyCount).toBe(0)
    expect(batch.outcomes().map(({ id }) => id)).toEqual(['1'])
  })

  it('keeps outcomes that were decided while a settlement was under way', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1', 'k'), event('2', 'l'), event('3', 'l')])
    const [first, second] = send(batch)
    batch.decide(first!, published)
    const settling = batch.outcomes()
    batch.decide(second!, retry)
    batch.settled(settling)
    expect(batch.outcomes().map(({ id }) => id)).toEqual(['2'])
    expect(batch.idsInHand()).toEqual(['2', '3'])
  })

  it('keeps no payload of what is decided, and what a settlement has to tell of it', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1', 'k', { payload: '{"big":1}' })])
    const [first] = send(batch)
    expect(batch.event('1')?.payload).toBe('{"big":1}')
    batch.decide(first!, published)
    expect(batch.event('1')).toMatchObject({ payload: null, orderingKey: 'k', eventType: first!.eventType })
  })

  it('gives back only shards in which nothing is ready, sent or waiting behind such an event', () => {
    const batch = new Batch('t', ready)
    batch.add([
      event('1', 'k', { shard: 1 }),
      event('2', 'k', { shard: 1 }),
      event('3', null, { shard: 2 }),
      event('4', null, { shard: 4 }),
    ])
    const [one, three] = send(batch)
    batch.decide(one!, published)
    batch.decide(three!, retry)
    // 2 is ready in shard 1, 4 is sent in shard 4
    expect(batch.finishedShards()).toEqual([2])
  })

  it('gives up what is ready without an outcome, with the rest of its key', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1'), event('2', 'k'), event('3', 'k')])
    batch.leaveReady()
    expect(batch.outcomes()).toEqual([])
    batch.settled([])
    expect(batch.inHandCount).toBe(0)
  })

  it('takes an event that it has in hand only once', () => {
    const batch = new Batch('t', ready)
    batch.add([event('1')])
    send(batch)
    batch.add([event('1')])
    expect(batch.readyCount).toBe(0)
  })
})
