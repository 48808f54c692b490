import { describe, expect, it } from 'vitest'
import type { DestinationFault, Publication } from '../../src/core/bisect.js'
import type { EntryAnswer } from '../../src/core/outcome.js'
import { retryDelayMs } from '../../src/core/retry-delays.js'
import {
  acceptedAny,
  countFaults,
  decide,
  decideUnrouted,
  decideUnsendable,
  storableText,
  type Attempt,
  type Circumstances,
} from '../../src/core/retry-policy.js'

const policy = { maxAttempts: 3, baseMs: 500, capMs: 60_000 }
/** The longest delay that full jitter allows. */
const longest = { next: () => 1 - Number.EPSILON }
const shortest = { next: () => 0 }

const attempt = (attempts = 0, orderingKey: string | null = null, onFailure: 'block' | 'skip' = 'block'): Attempt => ({
  event: { attempts, orderingKey },
  destination: 'orders',
  onFailure,
})
const alone: Circumstances = { neighbourAccepted: false, consecutiveFaults: 1 }
const amongAccepted: Circumstances = { neighbourAccepted: true, consecutiveFaults: 0 }
const refused = (fault: 'event' | 'transient' | 'destination'): EntryAnswer => ({
  kind: 'refused',
  fault,
  code: 'Code',
  reason: 'why',
})
const down: DestinationFault = { kind: 'destination-fault', code: 'AccessDenied', reason: 'no rights', configuration: true }

describe('back-off', () => {
  it('doubles its window with each attempt up to the cap, and uses all of it', () => {
    const delays = { baseMs: 500, capMs: 3000 }
    expect([1, 2, 3, 4, 100, 5000].map((n) => retryDelayMs(n, delays, longest))).toEqual([500, 1000, 2000, 3000, 3000, 3000])
    expect([1, 2, 100].map((n) => retryDelayMs(n, delays, shortest))).toEqual([1, 1, 1])
    expect(retryDelayMs(0, delays, longest)).toBe(500)
  })
})

describe('the outcome of an attempt', () => {
  it('is published only if the entry was accepted', () => {
    expect(decide({ kind: 'accepted', messageId: 'm-1' }, attempt(), alone, policy, longest)).toEqual({
      kind: 'published',
      destination: 'orders',
      messageId: 'm-1',
    })
  })

  it('is failure at once, on the first attempt too, if the event can never be sent unchanged', () => {
    expect(decide(refused('event'), attempt(0), alone, policy, longest)).toEqual({
      kind: 'failed',
      charge: true,
      block: false,
      destination: 'orders',
      errorCode: 'Code',
      error: 'why',
    })
    expect(decideUnsendable({ code: 'TooLarge', reason: 'big' }, attempt(0))).toMatchObject({ kind: 'failed', charge: false })
  })

  it('blocks the key of a failed event, unless its route says skip or it has none', () => {
    const block = (key: string | null, onFailure: 'block' | 'skip') =>
      decide(refused('event'), attempt(0, key, onFailure), alone, policy, longest)
    expect(block('customer-7', 'block')).toMatchObject({ block: true })
    expect(block('customer-7', 'skip')).toMatchObject({ block: false })
    expect(block(null, 'block')).toMatchObject({ block: false })
  })

  it('is a charged retry if neighbours were accepted and it was refused for now, or is missing from the answer', () => {
    for (const answer of [refused('transient'), { kind: 'missing' } as const]) {
      expect(decide(answer, attempt(1), amongAccepted, policy, longest)).toMatchObject({
        kind: 'retry',
        charge: true,
        delayMs: 1000,
      })
    }
    expect(decide({ kind: 'missing' }, attempt(0), amongAccepted, policy, longest)).toMatchObject({ errorCode: 'UnknownEntry' })
  })

  it('is an uncharged retry if nothing else was accepted: then the destination may be to blame', () => {
    for (const answer of [refused('transient'), { kind: 'missing' } as const]) {
      expect(decide(answer, attempt(99), alone, policy, longest)).toMatchObject({ kind: 'retry', charge: false, delayMs: 500 })
    }
  })

  it('is an uncharged retry for whatever is the fault of the destination, however many attempts there were', () => {
    for (const answer of [refused('destination'), down]) {
      for (const circumstances of [alone, amongAccepted]) {
        expect(decide(answer, attempt(99), circumstances, policy, longest)).toMatchObject({ kind: 'retry', charge: false })
      }
    }
    expect(decide(down, attempt(), alone, policy, longest)).toMatchObject({ errorCode: 'AccessDenied', error: 'no rights' })
  })

  it('is failure once the charged attempts are used up, with a reason that says so and why', () => {
    expect(decide(refused('transient'), attempt(1), amongAccepted, policy, longest)).toMatchObject({ kind: 'retry' })
    expect(decide(refused('transient'), attempt(2, 'k'), amongAccepted, policy, longest)).toEqual({
      kind: 'failed',
      charge: true,
      block: true,
      destination: 'orders',
      errorCode: 'Code',
      error: 'gave up after 3 charged attempts (allowed: 3); the last one: Code: why',
    })
  })

  it('waits longer the longer the destination is down, a minute at most', () => {
    const delay = (consecutiveFaults: number, capMs: number) =>
      decide(down, attempt(), { neighbourAccepted: false, consecutiveFaults }, { ...policy, capMs }, longest)
    expect(delay(1, 600_000)).toMatchObject({ delayMs: 500 })
    expect(delay(4, 600_000)).toMatchObject({ delayMs: 4000 })
    expect(delay(50, 600_000)).toMatchObject({ delayMs: 60_000 })
    expect(delay(50, 2000)).toMatchObject({ delayMs: 2000 })
  })

  it('for an event without a route is an uncharged retry within a minute that names the event type', () => {
    const unrouted = { kind: 'unrouted', destination: null, reason: 'no route matches event type "X"' } as const
    expect(decideUnrouted(unrouted, { ...policy, capMs: 600_000 }, longest)).toEqual({
      kind: 'retry',
      delayMs: 60_000,
      charge: false,
      destination: null,
      errorCode: 'NoRoute',
      error: 'no route matches event type "X"',
    })
    expect(decideUnrouted({ ...unrouted, destination: 'nowhere' }, policy, shortest)).toMatchObject({
      errorCode: 'UnknownDestination',
      destination: 'nowhere',
      delayMs: 1,
    })
  })
})

describe("a destination's consecutive faults", () => {
  const publication = (...answers: Publication['answers']): Publication => ({ answers, requests: 1 })
  const accepted: EntryAnswer = { kind: 'accepted', messageId: 'm' }

  it('grow with each request of which nothing was accepted, and end with the first acceptance', () => {
    expect(countFaults(2, publication(down, down))).toBe(3)
    expect(countFaults(2, publication(refused('transient'), { kind: 'missing' }))).toBe(3)
    expect(countFaults(2, publication(refused('destination'), accepted))).toBe(0)
  })

  it('are not changed by an event that is wrong in itself, nor by what was never sent', () => {
    expect(countFaults(2, publication(refused('event')))).toBe(2)
    expect(countFaults(2, publication({ kind: 'unsent' }))).toBe(2)
    expect(acceptedAny(publication(refused('event'), accepted))).toBe(true)
    expect(acceptedAny(publication(refused('event')))).toBe(false)
  })
})

describe('an error text', () => {
  it('is cut to what the database keeps, without anything that PostgreSQL refuses', () => {
    expect(storableText('a\u0000b\uD800c')).toBe('ab\uFFFDc')
    expect(storableText('😀'.repeat(1500))).toHaveLength(2000)
    expect(storableText(`${'x'.repeat(1999)}😀`)).toBe(`${'x'.repeat(1999)}\uFFFD`)
    expect(decide({ kind: 'accepted', messageId: 'm\u0000' }, attempt(), alone, policy, longest)).toMatchObject({
      messageId: 'm',
    })
  })
})
