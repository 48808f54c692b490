import { describe, expect, it } from 'vitest'
import type { MessageAnswer } from '../../src/core/bisect.js'
import { coolDownMs, opensCircuit, type Circuit } from '../../src/core/circuit.js'
import { judge } from '../../src/core/judge.js'
import { outboundEvent } from '../support/outbound-event.js'
import { fault } from '../support/scripted-publisher.js'

const delays = { baseMs: 500, capMs: 3_600_000 }
const policy = { ...delays, maxAttempts: 10 }
const heals = { configuration: false, timedOut: false }

describe('a circuit', () => {
  it('opens with the third fault in a row, or the first that will not heal, or that took a whole timeout', () => {
    expect([1, 2, 3, 4].map((faults) => opensCircuit(heals, faults))).toEqual([false, false, true, true])
    expect(opensCircuit({ ...heals, configuration: true }, 1)).toBe(true)
    expect(opensCircuit({ ...heals, timedOut: true }, 1)).toBe(true)
  })

  it('cools down twice as long after each failure, half of it at random, a minute at most', () => {
    const [shortest, longest] = [{ next: () => 0 }, { next: () => 1 }]
    expect([0, 1, 2, 7, 100].map((failures) => coolDownMs(failures, delays, longest))).toEqual([500, 1000, 2000, 60_000, 60_000])
    expect([0, 1, 2, 7, 100].map((failures) => coolDownMs(failures, delays, shortest))).toEqual([250, 500, 1000, 30_000, 30_000])
    expect(coolDownMs(100, { baseMs: 500, capMs: 2000 }, longest)).toBe(2000)
  })
})

describe('the verdict on an event', () => {
  const entry = (attempts = 0) => ({
    event: outboundEvent({ id: 'me', attempts }),
    destination: 'a',
    onFailure: 'block' as const,
    message: null,
  })
  const circuit = (probeEvent: string): Circuit => ({
    destination: 'a',
    state: 'half-open',
    failures: 3,
    probeEvent,
    retryInMs: 700,
    aside: true,
  })
  const alone = { neighbourAccepted: false, consecutiveFaults: 1 }
  const beside = { neighbourAccepted: true, consecutiveFaults: 0 }
  const transient: MessageAnswer = { kind: 'refused', fault: 'transient', code: 'InternalError', reason: 'later' }
  const verdict = (answer: MessageAnswer, open: Circuit | undefined, circumstances = alone) =>
    judge(answer, entry(), circumstances, open, policy, { next: () => 0.5 })

  it('is to give it up if it was not sent, whatever the circuit is', () => {
    expect([verdict({ kind: 'unsent' }, undefined), verdict({ kind: 'unsent' }, circuit('me'))]).toEqual(['leave', 'leave'])
  })

  it('is to send it again from where it is while its destination has failed less than three times', () => {
    expect(verdict(fault(), undefined)).toBe('again')
  })

  it.each([
    ['its request failed whole', fault()],
    ['it alone was refused for the moment', transient],
    ['the answer does not name it', { kind: 'missing' } as const],
  ])('is to put it aside without charge when the circuit is open and %s; the probe waits for the next try', (_, answer) => {
    expect(verdict(answer, circuit('another'))).toMatchObject({ kind: 'hold', destination: 'a' })
    expect(verdict(answer, circuit('me'))).toMatchObject({ kind: 'retry', charge: false, delayMs: 700, destination: 'a' })
  })

  it('is its own, open circuit or not, when it was accepted, refused for what it is, or refused beside an accepted one', () => {
    expect(verdict({ kind: 'accepted', messageId: 'm' }, circuit('another'))).toMatchObject({ kind: 'published' })
    const bad: MessageAnswer = { kind: 'refused', fault: 'event', code: 'bad', reason: 'bad' }
    expect(verdict(bad, circuit('another'))).toMatchObject({ kind: 'failed' })
    expect(verdict(transient, circuit('another'), beside)).toMatchObject({ kind: 'retry', charge: true })
  })
})
