import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pack, type QueuedMessage } from '../../src/core/batching.js'

interface Item extends QueuedMessage {
  readonly seq: number
}

const destinations = ['bus', 'queue'] as const
const queues = fc
  .array(
    fc.record({
      destination: fc.constantFrom(...destinations),
      orderingKey: fc.constantFrom(null, null, 'a', 'b', 'c', 'd'),
      bytes: fc.integer({ min: 1, max: 60 }),
    }),
    { maxLength: 60 },
  )
  .map((rows) => rows.map(({ bytes, ...row }, seq): Item => ({ ...row, seq, message: { bytes } })))
const limits = fc.record({ maxEntries: fc.integer({ min: 1, max: 10 }), maxBytes: fc.integer({ min: 60, max: 200 }) })

describe('requests packed from a queue', () => {
  it('never exceed a limit, never hold two events of a key, and never take a busy key', () => {
    fc.assert(
      fc.property(queues, limits, fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd')), (queue, limit, busy) => {
        const request = pack(queue, 'queue', limit, new Set(busy))
        const keys = request.flatMap(({ orderingKey }) => orderingKey ?? [])
        expect(new Set(keys).size).toBe(keys.length)
        expect(keys.filter((key) => new Set<string>(busy).has(key))).toEqual([])
        expect(request.length).toBeLessThanOrEqual(limit.maxEntries)
        expect(request.reduce((bytes, { message }) => bytes + message.bytes, 0)).toBeLessThanOrEqual(limit.maxBytes)
        expect(request.every(({ destination }) => destination === 'queue')).toBe(true)
        expect(request.map(({ seq }) => seq)).toEqual(request.map(({ seq }) => seq).sort((a, b) => a - b))
      }),
    )
  })

  it('send everything once, each key in order across destinations, however long requests are out', () => {
    fc.assert(
      fc.property(queues, limits, fc.infiniteStream(fc.nat()), (queue, limit, choices) => {
        const choose = (below: number) => (choices.next().value as number) % below
        let waiting = [...queue]
        const inFlight: (readonly Item[])[] = []
        const confirmed: Item[] = []
        while (waiting.length > 0 || inFlight.length > 0) {
          const busy = new Set(inFlight.flat().flatMap(({ orderingKey }) => orderingKey ?? []))
          const first = choose(2)
          const requests = [first, 1 - first].map((index) => pack(waiting, destinations[index]!, limit, busy))
          const request = requests.find(({ length }) => length > 0)
          // nothing can be sent, or a coin says so: a request in flight is confirmed
          if (request === undefined || (inFlight.length > 0 && choose(2) === 0)) {
            expect(inFlight.length).toBeGreaterThan(0)
            confirmed.push(...inFlight.splice(choose(inFlight.length), 1)[0]!)
          } else {
            inFlight.push(request)
            waiting = waiting.filter((item) => !request.includes(item))
          }
        }
        expect(confirmed.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(queue.map(({ seq }) => seq))
        for (const key of ['a', 'b', 'c', 'd']) {
          const seqs = confirmed.filter(({ orderingKey }) => orderingKey === key).map(({ seq }) => seq)
          expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
        }
      }),
    )
  })
})
