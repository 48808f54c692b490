import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pack } from '../../src/core/batching.js'

const queues = fc
  .array(fc.integer({ min: 1, max: 60 }), { maxLength: 60 })
  .map((sizes) => sizes.map((bytes, seq) => ({ seq, message: { bytes } })))
const limits = fc.record({ maxEntries: fc.integer({ min: 1, max: 10 }), maxBytes: fc.integer({ min: 60, max: 200 }) })

describe('requests packed from a queue', () => {
  it('never exceed a limit, and send everything exactly once', () => {
    fc.assert(
      fc.property(queues, limits, (queue, limit) => {
        let waiting: readonly (typeof queue)[number][] = queue
        const sent: number[] = []
        while (waiting.length > 0) {
          const request = pack(waiting, limit)
          expect(request.length).toBeGreaterThan(0)
          expect(request.length).toBeLessThanOrEqual(limit.maxEntries)
          expect(request.reduce((bytes, { message }) => bytes + message.bytes, 0)).toBeLessThanOrEqual(limit.maxBytes)
          sent.push(...request.map(({ seq }) => seq))
          waiting = waiting.filter((item) => !request.includes(item))
        }
        expect(sent.sort((a, b) => a - b)).toEqual(queue.map(({ seq }) => seq))
      }),
    )
  })
})
