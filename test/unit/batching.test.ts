import { describe, expect, it } from 'vitest'
import { pack } from '../../src/core/batching.js'

const item = (id: string, bytes = 10) => ({ id, message: { bytes } })
const packed = (queue: readonly ReturnType<typeof item>[]) => pack(queue, { maxEntries: 3, maxBytes: 100 }).map(({ id }) => id)

describe('the next request', () => {
  it('takes from the front, up to the entries of a request', () => {
    expect(packed([item('1'), item('2'), item('3'), item('4')])).toEqual(['1', '2', '3'])
    expect(packed([])).toEqual([])
  })

  it('takes at most the bytes of a request, and fills up with what fits behind', () => {
    expect(packed([item('1', 60), item('2', 41), item('3', 40)])).toEqual(['1', '3'])
  })

  it('does not stop at a message that is larger than any request', () => {
    expect(packed([item('1', 500), item('2')])).toEqual(['1'])
    expect(packed([item('2'), item('1', 500)])).toEqual(['2'])
  })
})
