import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DestinationFault } from '../../src/core/bisect.js'
import type { EntryAnswer } from '../../src/core/outcome.js'
import { retryDelayMs } from '../../src/core/retry-delays.js'
import { decide, type Attempt } from '../../src/core/retry-policy.js'

const wild = fc.string({ unit: 'binary', maxLength: 4000 })
const refused = fc.record({
  kind: fc.constant('refused' as const),
  fault: fc.constantFrom('event' as const, 'transient' as const, 'destination' as const),
  code: wild,
  reason: wild,
})
const answers: fc.Arbitrary<EntryAnswer | DestinationFault> = fc.oneof(
  refused,
  fc.record({ kind: fc.constant('accepted' as const), messageId: wild }),
  fc.constant({ kind: 'missing' as const }),
  fc.record({ kind: fc.constant('destination-fault' as const), code: wild, reason: wild, configuration: fc.boolean() }),
)
const attempts: fc.Arbitrary<Attempt> = fc.record({
  event: fc.record({ attempts: fc.nat(200), orderingKey: fc.constantFrom(null, 'k') }),
  destination: fc.constant('orders'),
  onFailure: fc.constantFrom('block' as const, 'skip' as const),
})
const circumstances = fc.record({ neighbourAccepted: fc.boolean(), consecutiveFaults: fc.nat(10_000) })
const policies = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 100 }),
  baseMs: fc.integer({ min: 10, max: 60_000 }),
  capMs: fc.integer({ min: 100, max: 3_600_000 }),
})
const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }).map((value) => ({ next: () => value }))

describe('decisions', () => {
  it('publish what was accepted and nothing else', () => {
    fc.assert(
      fc.property(answers, attempts, circumstances, policies, randoms, (answer, attempt, context, policy, random) => {
        expect(decide(answer, attempt, context, policy, random).kind === 'published').toBe(answer.kind === 'accepted')
      }),
    )
  })

  it('never fail or charge an event for what is not its fault', () => {
    fc.assert(
      fc.property(answers, attempts, circumstances, policies, randoms, (answer, attempt, context, policy, random) => {
        const outcome = decide(answer, attempt, context, policy, random)
        if (outcome.kind === 'published') return
        const eventFault = answer.kind === 'refused' && answer.fault === 'event'
        const transient = answer.kind === 'missing' || (answer.kind === 'refused' && answer.fault === 'transient')
        expect(outcome.charge).toBe(eventFault || (transient && context.neighbourAccepted))
        expect(outcome.kind === 'failed').toBe(
          eventFault || (transient && context.neighbourAccepted && attempt.event.attempts + 1 >= policy.maxAttempts),
        )
      }),
    )
  })

  it('wait between 1 ms and the cap, a minute at most if they do not charge', () => {
    fc.assert(
      fc.property(answers, attempts, circumstances, policies, randoms, (answer, attempt, context, policy, random) => {
        const outcome = decide(answer, attempt, context, policy, random)
        if (outcome.kind !== 'retry') return
        expect(Number.isInteger(outcome.delayMs)).toBe(true)
        expect(outcome.delayMs).toBeGreaterThanOrEqual(1)
        expect(outcome.delayMs).toBeLessThanOrEqual(outcome.charge ? policy.capMs : Math.min(policy.capMs, 60_000))
      }),
    )
  })

  it('carry only texts that the database takes', () => {
    fc.assert(
      fc.property(answers, attempts, circumstances, policies, randoms, (answer, attempt, context, policy, random) => {
        const outcome = decide(answer, attempt, context, policy, random)
        for (const text of outcome.kind === 'published' ? [outcome.messageId] : [outcome.errorCode, outcome.error]) {
          expect(text.length).toBeLessThanOrEqual(2000)
          expect(text).not.toMatch(/\u0000|\p{Surrogate}/u)
        }
      }),
    )
  })

  it('grow their window with every attempt', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2000 }), policies, randoms, (attempt, policy, random) => {
        expect(retryDelayMs(attempt + 1, policy, random)).toBeGreaterThanOrEqual(retryDelayMs(attempt, policy, random))
      }),
    )
  })
})
