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
