import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Batch } from '../../src/core/batch.js'
import type { ClaimedEvent } from '../../src/core/event.js'
import type { Outcome } from '../../src/core/outcome.js'
import { outboundEvent } from '../support/outbound-event.js'

/**
 * A model of the database under one token: events in seq order, each ready, waiting or gone; a claim never returns an event
 * behind a waiting one of its key, nor one that is named as in flight.
 */
class Model {
  readonly acceptedByKey = new Map<string, bigint[]>()
  readonly waiting = new Set<string>()
  readonly gone = new Set<string>()

  constructor(readonly events: readonly ClaimedEvent[]) {}

  claim(inFlight: readonly string[], limit: number): ClaimedEvent[] {
    const busy = new Set(inFlight)
    const blocked = (of: ClaimedEvent): boolean =>
      this.events.some((other) => other.orderingKey === of.orderingKey && other.seq < of.seq && this.waiting.has(other.id))
    return this.events
      .filter((of) => !busy.has(of.id) && !this.gone.has(of.id) && !this.waiting.has(of.id) && !blocked(of))
      .slice(0, limit)
  }
}

const step = fc.oneof(
  fc.record({ kind: fc.constant('claim' as const), limit: fc.integer({ min: 1, max: 8 }) }),
  fc.record({
    kind: fc.constant('send' as const),
    destination: fc.constantFrom('a', 'b'),
    entries: fc.integer({ min: 1, max: 4 }),
  }),
  fc.record({ kind: fc.constant('answer' as const), nth: fc.nat(20), accepted: fc.boolean() }),
  fc.record({ kind: fc.constant('settle' as const) }),
  fc.record({ kind: fc.constant('due' as const) }),
)

describe('a batch, whatever is claimed, sent, answered and settled in whatever order', () => {
  it('never has two events of a key out at once, and lets the first acceptances of a key happen in order', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ key: fc.constantFrom('k', 'l', null), destination: fc.constantFrom('a', 'b') }), {
          minLength: 1,
          maxLength: 24,
        }),
        fc.array(step, { maxLength: 120 }),
        (shape, steps) => {
          const events = shape.map(({ key, destination }, index) =>
            outboundEvent({ id: `e${index}`, seq: BigInt(index), orderingKey: key, destination, shard: key === 'k' ? 1 : 2 }),
          )
          const model = new Model(events)
          const batch = new Batch('t', (of) => ({
            kind: 'ready',
            destination: of.destination ?? 'a',
            onFailure: 'block',
            message: { eventId: of.id, bytes: 1, entry: null },
          }))
          const out: ClaimedEvent[] = []

          for (const action of steps) {
            switch (action.kind) {
              case 'claim':
                // the relay settles what is decided before it claims again under the same token
                if (batch.decidedCount === 0) batch.add(model.claim(batch.idsInHand(), action.limit))
                break
              case 'send': {
                const entries = batch.ready(action.destination).slice(0, action.entries)
                batch.take(action.destination, entries)
                out.push(...entries.map((entry) => entry.event))
                const keysOut = out.map((of) => of.orderingKey).filter((key) => key !== null)
                expect(new Set(keysOut).size).toBe(keysOut.length)
                break
              }
              case 'answer': {
                const [answered] = out.splice(action.nth % Math.max(1, out.length), 1)
                if (answered === undefined) break
                const outcome: Outcome = action.accepted
                  ? { kind: 'published', destination: 'a', messageId: 'm' }
                  : { kind: 'retry', delayMs: 1, charge: false, destination: 'a', errorCode: 'x', error: 'x' }
                if (action.accepted && answered.orderingKey !== null) {
                  const accepted = model.acceptedByKey.get(answered.orderingKey) ?? []
                  model.acceptedByKey.set(answered.orderingKey, [...accepted, answered.seq])
                }
                batch.decide(answered, outcome)
                break
              }
              case 'settle': {
                const outcomes = batch.outcomes()
                for (const { id, outcome } of outcomes) (outcome.kind === 'published' ? model.gone : model.waiting).add(id)
                batch.settled(outcomes)
                break
              }
              case 'due':
                model.waiting.clear()
                break
            }
          }
          for (const accepted of model.acceptedByKey.values()) {
            expect(accepted).toEqual([...accepted].sort((x, y) => Number(x - y)))
            expect(new Set(accepted).size).toBe(accepted.length)
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})
