import { describe, expect, it } from 'vitest'
import { Lease } from '../../src/core/lease.js'
import { TestClock } from '../support/test-clock.js'

describe('what a relay believes of its lease', () => {
  it('ends before that of the database, however slow the call was', () => {
    const clock = new TestClock()
    const lease = new Lease(clock, 30)
    expect(lease.remainingMs()).toBe(Number.NEGATIVE_INFINITY)
    lease.begin()
    clock.advance(4_000) // the claim is under way
    expect(lease.remainingMs()).toBe(26_000)
    clock.advance(6_000)
    lease.renewalSent()
    clock.advance(3_000) // the renewal is under way
    lease.renewed()
    expect(lease.remainingMs()).toBe(27_000)
  })

  it('is not made longer by a renewal that has no answer', () => {
    const clock = new TestClock()
    const lease = new Lease(clock, 30)
    lease.begin()
    clock.advance(10_000)
    lease.renewalSent()
    clock.advance(5_000)
    expect(lease.remainingMs()).toBe(15_000)
  })

  it('is renewed at a third of it, and again a third later if that fails', () => {
    const clock = new TestClock()
    const lease = new Lease(clock, 30)
    expect(lease.renewalIsDue()).toBe(false)
    lease.begin()
    clock.advance(9_999)
    expect([lease.renewalIsDue(), lease.renewalDueInMs()]).toEqual([false, 1])
    clock.advance(1)
    expect(lease.renewalIsDue()).toBe(true)
    lease.renewalSent()
    expect(lease.renewalIsDue()).toBe(false)
    clock.advance(10_000)
    expect(lease.renewalIsDue()).toBe(true)
  })
})
