import { describe, expect, it } from 'vitest'
import { Signal } from '../../src/core/signal.js'
import { systemClock } from '../../src/data-api/system-clock.js'

describe('a signal', () => {
  it('lets timers run, however often it is waited for with no time left', async () => {
    const signal = new Signal(systemClock)
    let ran = false
    setTimeout(() => (ran = true), 0)
    let waits = 0
    while (!ran && waits < 1000) {
      waits += 1
      await signal.wait(waits % 2 === 0 ? 0 : -5)
    }
    expect(ran).toBe(true)
  })

  it('keeps a raise that nobody waits for, once', async () => {
    const signal = new Signal(systemClock)
    signal.raise()
    const begunAtMs = systemClock.nowMs()
    await signal.wait(10_000)
    await signal.wait(20)
    expect(systemClock.nowMs() - begunAtMs).toBeGreaterThan(10)
    expect(systemClock.nowMs() - begunAtMs).toBeLessThan(9_000)
  })

  it('wakes whoever waits', async () => {
    const signal = new Signal(systemClock)
    const begunAtMs = systemClock.nowMs()
    const waiting = signal.wait(10_000)
    signal.raise()
    await waiting
    expect(systemClock.nowMs() - begunAtMs).toBeLessThan(9_000)
  })
})
