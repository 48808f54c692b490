import { describe, expect, it } from 'vitest'
import { runBatches } from '../../src/cli/batches.js'
import { TestClock } from '../support/test-clock.js'

const never = new AbortController().signal

/** A database with so many events to act on, and what was asked of it. */
function rig(events: number, { callMs = 0 } = {}) {
  const clock = new TestClock()
  const asked: number[] = []
  const seen: number[] = []
  let left = events
  return {
    asked,
    seen,
    slept: clock.slept,
    carryOut: (maxRows: number): Promise<number> => {
      asked.push(maxRows)
      clock.advance(callMs)
      const changed = Math.min(maxRows, left)
      left -= changed
      return Promise.resolve(changed)
    },
    // a sleep that nobody wakes moves the clock
    clock: { nowMs: () => clock.nowMs(), epochMs: () => 0, sleep: (ms: number) => clock.sleep(ms) },
    onBatch: (count: number) => void seen.push(count),
  }
}

describe('batches', () => {
  it('of a hundred follow one another until one finds nothing', async () => {
    const it = rig(250)
    expect(await runBatches(it.carryOut, { ...it, stop: never })).toBe('done')
    expect(it.asked).toEqual([100, 100, 100, 100])
    expect(it.seen).toEqual([100, 200, 250, 250])
    expect(it.slept).toEqual([])
  })

  it('end at the limit, without another look', async () => {
    const it = rig(1000)
    await runBatches(it.carryOut, { ...it, stop: never, limit: 150 })
    expect(it.asked).toEqual([100, 50])
  })

  it('keep to the rate: a second passes for each so many events, the time of the call included', async () => {
    const it = rig(25, { callMs: 300 })
    await runBatches(it.carryOut, { ...it, stop: never, rate: 10 })
    expect(it.asked).toEqual([10, 10, 10, 10])
    expect(it.slept).toEqual([700, 700, 200])
    const fast = rig(300, { callMs: 10 })
    await runBatches(fast.carryOut, { ...fast, stop: never, rate: 1000 })
    expect(fast.asked).toEqual([100, 100, 100, 100])
    expect(fast.slept).toEqual([90, 90, 90])
  })

  it('end after the one under way when they are stopped', async () => {
    const stop = new AbortController()
    const it = rig(1000)
    const onBatch = (count: number): void => {
      it.seen.push(count)
      if (count === 200) stop.abort()
    }
    expect(await runBatches(it.carryOut, { ...it, stop: stop.signal, onBatch })).toBe('stopped')
    expect(it.seen).toEqual([100, 200])
  })

  it('pass an error on, after what was done was told', async () => {
    const it = rig(1000)
    const carryOut = (maxRows: number) => (it.asked.length === 2 ? Promise.reject(new Error('gone')) : it.carryOut(maxRows))
    await expect(runBatches(carryOut, { ...it, stop: never })).rejects.toThrow('gone')
    expect(it.seen).toEqual([100, 200])
  })
})
