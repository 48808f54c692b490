import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runCli } from '../../src/cli/main.js'
import { fakeTerminal } from '../support/fake-terminal.js'

/** A start that fails, as one does whose processes got the Ctrl-C that was meant for all. */
beforeEach(() => vi.stubEnv('OUTBOX_HANDLERS', '/nowhere'))
afterEach(() => vi.unstubAllEnvs())

const run = (args: readonly string[], stop: AbortSignal) => runCli(args, fakeTerminal({ stop }))

describe.each([
  { args: ['demo'], interrupted: 130 },
  { args: ['local', '--port', '0'], interrupted: 0 },
])('outbox $args', ({ args, interrupted }) => {
  it('counts as interrupted if what it was starting fails after Ctrl-C', async () => {
    expect(await run(args, AbortSignal.abort())).toBe(interrupted)
  })

  it('fails if what it was starting fails by itself', async () => {
    expect(await run(args, new AbortController().signal)).toBe(1)
  })
})
