import { describe, expect, it } from 'vitest'
import { pack, type QueuedMessage } from '../../src/core/batching.js'

interface Item extends QueuedMessage {
  readonly id: string
}

const item = (id: string, orderingKey: string | null = null, bytes = 10, destination = 'orders'): Item => ({
  id,
  destination,
  orderingKey,
  message: { bytes },
})

const limits = { maxEntries: 3, maxBytes: 100 }
const packed = (queue: readonly Item[], busy: readonly string[] = []) =>
  pack(queue, 'orders', limits, new Set(busy)).map(({ id }) => id)

describe('the next request', () => {
  it('takes from the front, up to the entries of a request', () => {
    expect(packed([item('1'), item('2'), item('3'), item('4')])).toEqual(['1', '2', '3'])
    expect(packed([])).toEqual([])
  })

  it('takes at most the bytes of a request, and fills up with what fits behind', () => {
    expect(packed([item('1', null, 60), item('2', null, 41), item('3', null, 40)])).toEqual(['1', '3'])
  })

  it('holds at most one event of an ordering key', () => {
    expect(packed([item('1', 'a'), item('2', 'a'), item('3', 'b'), item('4', 'a')])).toEqual(['1', '3'])
  })

  it('passes over a key whose earlier event is not confirmed', () => {
    expect(packed([item('1', 'a'), item('2', 'b'), item('3')], ['a'])).toEqual(['2', '3'])
    expect(packed([item('1', 'a')], ['a'])).toEqual([])
  })

  it('passes over the later events of a key whose first does not fit', () => {
    expect(packed([item('1', null, 60), item('2', 'a', 50), item('3', 'a', 10), item('4', 'b', 10)])).toEqual(['1', '4'])
  })

  it('passes over an event while an earlier one of its key waits for another destination', () => {
    expect(packed([item('1', 'a', 10, 'billing'), item('2', 'a'), item('3', 'b')])).toEqual(['3'])
  })

  it('does not stop at a message that is larger than any request', () => {
    expect(packed([item('1', null, 500), item('2')])).toEqual(['1'])
    expect(packed([item('2'), item('1', null, 500)])).toEqual(['2'])
  })
})
