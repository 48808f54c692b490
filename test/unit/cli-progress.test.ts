import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { withProgress } from '../../src/cli/progress.js'
import { fakeTerminal } from '../support/fake-terminal.js'

describe('progress', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('says nothing about what takes less than two seconds', async () => {
    const terminal = fakeTerminal({ watched: true })
    const work = withProgress(terminal, 'reading', () => new Promise((resolve) => setTimeout(() => resolve('done'), 1900)))
    await vi.advanceTimersByTimeAsync(1900)
    await expect(work).resolves.toBe('done')
    expect(terminal.errText()).toBe('')
  })

  it('says what it does and for how long, each second, and wipes the line at the end', async () => {
    const terminal = fakeTerminal({ watched: true })
    const work = withProgress(terminal, 'reading', () => new Promise((resolve) => setTimeout(resolve, 3500)))
    await vi.advanceTimersByTimeAsync(3500)
    await work
    expect(terminal.errText()).toContain('\rreading ... 2 seconds\rreading ... 3 seconds')
    expect(terminal.errText()).toMatch(/\r +\r$/)
  })

  it('says nothing when nobody watches', async () => {
    const terminal = fakeTerminal({ watched: false })
    const work = withProgress(terminal, 'reading', () => new Promise((resolve) => setTimeout(resolve, 5000)))
    await vi.advanceTimersByTimeAsync(5000)
    await work
    expect(terminal.errText()).toBe('')
  })

  it('lets an error pass and stops ticking', async () => {
    const terminal = fakeTerminal({ watched: true })
    const work = withProgress(terminal, 'reading', () => Promise.reject(new Error('refused')))
    await expect(work).rejects.toThrow('refused')
    await vi.advanceTimersByTimeAsync(10_000)
    expect(terminal.errText()).toBe('')
  })
})
