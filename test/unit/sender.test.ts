import { describe, expect, it } from 'vitest'
import type { PublishAnswer } from '../../src/core/outcome.js'
import type { Message } from '../../src/core/ports.js'
import { Sender, SLOW_AFTER_FAULT_MS, SLOW_AFTER_MS } from '../../src/core/sender.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'
import { fault } from '../support/scripted-publisher.js'
import { TestClock } from '../support/test-clock.js'

const ok: PublishAnswer = { kind: 'answered', entries: [{ kind: 'accepted', messageId: 'm' }] }
const message: Message = { eventId: 'e', bytes: 1, entry: null }

/** A destination whose answers the test gives when it likes. */
function rig(capMs = 60_000) {
  const clock = new TestClock()
  const telemetry = new RecordingTelemetry()
  const open: ((answer: PublishAnswer) => void)[] = []
  const sender = new Sender({
    destination: 'queue',
    publisher: {
      limits: { maxEntries: 10, maxBytes: 1000 },
      prepare: () => ({ ok: false, code: '', reason: '' }),
      publish: () => new Promise((resolve) => open.push(resolve)),
    },
    requestsInFlight: 3,
    policy: { maxAttempts: 10, baseMs: 1000, capMs },
    clock,
    random: { next: () => 0.999, uuid: () => '' },
    telemetry,
    onRoom: () => undefined,
  })
  const send = async () => {
    const publication = sender.send(
      () => Promise.resolve([message]),
      () => true,
    )
    await Promise.resolve()
    return publication
  }
  const started = async () => {
    const publication = send()
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    return { publication, answer: open.at(-1)! }
  }
  return { clock, telemetry, sender, started }
}

describe('a sender', () => {
  it('has room for as many requests at a time as configured', async () => {
    const { sender, started } = rig()
    const requests = [await started(), await started(), await started()]
    expect(sender.hasRoom()).toBe(false)
    requests[0]!.answer(ok)
    await requests[0]!.publication
    expect(sender.hasRoom()).toBe(true)
  })

  it('pauses after a request that failed whole, then lets one request alone try, and opens after an acceptance', async () => {
    const { sender, started, clock } = rig()
    const first = await started()
    first.answer(fault())
    await first.publication
    expect(sender.hasRoom()).toBe(false)
    expect(sender.lastFault).toEqual({
      code: 'ServiceUnavailable',
      reason: 'the destination answered ServiceUnavailable',
      configuration: false,
      timedOut: false,
    })
    clock.advance(1000)
    expect(sender.hasRoom()).toBe(true)
    const probe = await started()
    expect(sender.hasRoom()).toBe(false)
    probe.answer(ok)
    await probe.publication
    const next = await started()
    expect(sender.hasRoom()).toBe(true)
    next.answer(ok)
  })

  it('pauses a second at most, whatever the retry base is, and takes requests that were out together as one fault', async () => {
    const { sender, started, clock, telemetry } = rig()
    const together = [await started(), await started(), await started()]
    clock.advance(10)
    for (const request of together) {
      request.answer(fault())
      await request.publication
    }
    expect(sender.consecutiveFaults).toBe(1)
    expect(telemetry.sum('DestinationFaults', 'queue')).toBe(3)
    expect(telemetry.logged('destination-fault')).toMatchObject([{ consecutiveFaults: 1, pauseMs: 1000, configuration: false }])
    clock.advance(1000)
    const probe = await started()
    probe.answer(fault())
    await probe.publication
    expect(sender.consecutiveFaults).toBe(2)
    expect(sender.nextChangeMs()).toBe(1000)
  })

  it('ends its pause when told to', async () => {
    const { sender, started } = rig()
    const request = await started()
    request.answer(fault())
    await request.publication
    expect(sender.hasRoom()).toBe(false)
    sender.resume()
    expect(sender.hasRoom()).toBe(true)
  })

  it('is slow once a request has been out for too long', async () => {
    const { sender, started, clock } = rig()
    const slow = await started()
    clock.advance(SLOW_AFTER_MS)
    expect(sender.isSlow()).toBe(false)
    expect(sender.nextChangeMs()).toBe(1)
    clock.advance(1)
    expect(sender.isSlow()).toBe(true)
    slow.answer(ok)
    await slow.publication
    expect(sender.isSlow()).toBe(false)
  })

  it('is slow sooner while the request that is out tries a destination which failed', async () => {
    const { sender, started, clock } = rig()
    const first = await started()
    first.answer(fault())
    await first.publication
    clock.advance(1000)
    const probe = await started()
    clock.advance(SLOW_AFTER_FAULT_MS)
    expect(sender.isSlow()).toBe(false)
    expect(sender.nextChangeMs()).toBe(1)
    clock.advance(1)
    expect(sender.isSlow()).toBe(true)
    probe.answer(ok)
    await probe.publication
    expect(sender.isSlow()).toBe(false)
  })

  it('takes one round of full requests as long as it is not measured, then what it took of late, less what is out', async () => {
    const { sender, started, clock } = rig()
    expect(sender.takesWithin(1000)).toBe(30)
    for (let round = 0; round < 40; round++) {
      const request = await started()
      clock.advance(100)
      request.answer(ok)
      await request.publication
    }
    // 3 requests side by side, each with 1 event in 100 ms
    expect([sender.takesWithin(1000), sender.takesWithin(10)]).toEqual([30, 3])
    const out = await started()
    expect(sender.takesWithin(1000)).toBe(29)
    clock.advance(SLOW_AFTER_MS + 1)
    expect(sender.takesWithin(1000)).toBe(0)
    out.answer(ok)
    await out.publication
  })

  it('takes soon whatever it has room for, and what goes within half a second by what it took of late', async () => {
    const { sender, started, clock } = rig()
    for (let round = 0; round < 40; round++) {
      const request = await started()
      clock.advance(100)
      request.answer(ok)
      await request.publication
    }
    expect(sender.takesSoon(1000)).toBe(true)
    const all = [await started(), await started(), await started()]
    // 15 in half a second, 3 of which are out
    expect([sender.takesSoon(11), sender.takesSoon(12)]).toEqual([true, false])
    clock.advance(SLOW_AFTER_MS + 1)
    expect(sender.takesSoon(1)).toBe(false)
    all[0]!.answer(ok)
    await all[0]!.publication
    expect(sender.takesSoon(1000)).toBe(true)
    for (const request of all.slice(1)) {
      request.answer(ok)
      await request.publication
    }
  })

  it('takes soon what waits for its first answers, for half a second', async () => {
    const { sender, started, clock } = rig()
    const all = [await started(), await started(), await started()]
    clock.advance(499)
    expect(sender.takesSoon(1000)).toBe(true)
    clock.advance(1)
    expect(sender.takesSoon(1000)).toBe(false)
    for (const request of all) {
      request.answer(ok)
      await request.publication
    }
  })

  it('is not paused by an event that is refused for what it is', async () => {
    const { sender, started } = rig()
    const request = await started()
    request.answer({ kind: 'answered', entries: [{ kind: 'refused', fault: 'event', code: 'x', reason: 'x' }] })
    await request.publication
    expect([sender.consecutiveFaults, sender.hasRoom()]).toEqual([0, true])
  })
})
