import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { startScheduler } from '../../src/local/scheduler/scheduler.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('the scheduler invokes at once and then every period, whether or not the one before has ended, until it is stopped', () => {
  const never = vi.fn(() => new Promise<void>(() => undefined))
  const hourly = vi.fn(() => Promise.resolve())
  const stop = startScheduler([
    { periodSeconds: 60, invoke: never },
    { periodSeconds: 3600, invoke: hourly },
  ])
  expect([never.mock.calls.length, hourly.mock.calls.length]).toEqual([1, 1])
  vi.advanceTimersByTime(59_999)
  expect(never).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1)
  expect(never).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(3_540_000)
  expect([never.mock.calls.length, hourly.mock.calls.length]).toEqual([61, 2])
  stop()
  vi.advanceTimersByTime(7_200_000)
  expect(never).toHaveBeenCalledTimes(61)
})

it('the scheduler invokes late by its share of the jitter, but never the first time, and not at all once it is stopped', () => {
  const invoke = vi.fn(() => Promise.resolve())
  const shares = [0.5, 1, 0.25]
  const stop = startScheduler([{ periodSeconds: 60, jitterSeconds: 10, invoke }], () => shares.shift()!)
  const callsAt = (ms: number) => {
    vi.advanceTimersByTime(ms)
    return invoke.mock.calls.length
  }
  expect(invoke).toHaveBeenCalledTimes(1)
  expect([callsAt(64_999), callsAt(1)]).toEqual([1, 2])
  expect([callsAt(64_999), callsAt(1)]).toEqual([2, 3])
  // the third is due in 50 s, and late by 2.5 s
  expect(callsAt(51_000)).toBe(3)
  stop()
  expect(callsAt(600_000)).toBe(3)
})
