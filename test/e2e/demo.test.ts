import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { LocalStackDescription } from '../../src/local/stack.js'
import { startOutbox, type RunningCommand } from '../support/outbox-command.js'
import { descendantsOf, ownTemporary, stillAlive, type OwnTemporary, type Process } from '../support/remains.js'

const small = ['--orders', '200', '--outage-seconds', '3']
/** A small one takes 20 s on two cores that have nothing else to do. */
const timeoutMs = 240_000

let temporary: OwnTemporary
const running: RunningCommand[] = []

beforeEach(async () => {
  temporary = await ownTemporary()
})

afterEach(async () => {
  await temporary.remove()
})

afterAll(async () => {
  // only after a failure is one left
  for (const command of running) command.signal('SIGTERM')
  await Promise.all(running.map(({ ended }) => ended))
})

const start = (...args: string[]): RunningCommand => {
  const command = startOutbox(args, { TMPDIR: temporary.directory })
  running.push(command)
  return command
}

const expectNothingLeft = async (processes: readonly Process[]) => {
  // the last of them end with a pipe of their parent's, a moment after it
  await vi.waitFor(() => expect(stillAlive(processes)).toEqual([]), { timeout: 5000, interval: 50 })
  expect(await temporary.left()).toEqual([])
}

describe('the demo', () => {
  it(
    'ends with a balanced ledger as the one thing on stdout, tells what happens each second, and leaves nothing behind',
    async () => {
      const command = start('demo', ...small, '--json')
      await command.seen('flowing')
      const processes = descendantsOf(command.pid)
      expect(processes.length).toBeGreaterThan(3)
      const { code, out, err } = await command.ended

      const ledger = JSON.parse(out) as Record<string, number>
      expect(ledger).toEqual({
        committed: 200,
        rolledBack: 10,
        published: 200,
        duplicates: expect.any(Number) as number,
        consumed: 200,
        lost: 0,
        orderViolations: 0,
        failed: 0,
      })
      // answers were lost when the outage began, and the bus knows no deduplication
      expect(ledger['duplicates']).toBeGreaterThan(0)
      expect(err).toMatch(/OUTAGE +\d+ +\d+ +\d+ +[1-9]\d* /)
      expect(err).toContain('The ledger balances')
      expect(err).not.toContain('"level"')
      expect(code).toBe(0)
      await expectNothingLeft(processes)
    },
    timeoutMs,
  )

  it(
    'fails with the reason when messages were lost behind a yes',
    async () => {
      const { code, out, err } = await start('demo', '--orders', '100', '--outage-seconds', '0', '--swallow', '--json').ended
      const ledger = JSON.parse(out) as Record<string, number>
      expect(ledger).toMatchObject({ committed: 100, published: 100, consumed: 97, lost: 3 })
      expect(err).toMatch(/does NOT balance: .*3 committed orders never took effect/)
      expect(code).toBe(1)
    },
    timeoutMs,
  )

  it(
    'ends at Ctrl-C in the middle of the outage and leaves nothing behind',
    async () => {
      const command = start('demo', ...small)
      await command.seen('OUTAGE')
      const processes = descendantsOf(command.pid)
      expect(processes.map((one) => one.command)).toContain('postgres')
      command.signal('SIGINT', 'group')
      const { code, err } = await command.ended
      expect(err).toBe('outbox: interrupted before the ledger was drawn; everything is stopped and removed\n')
      expect(code).toBe(130)
      await expectNothingLeft(processes)
    },
    timeoutMs,
  )

  it(
    'ends at Ctrl-C while it is still starting',
    async () => {
      const command = start('demo')
      await command.seen('Starting')
      await vi.waitFor(() => expect(descendantsOf(command.pid)).not.toEqual([]), { timeout: 30_000, interval: 20 })
      const processes = descendantsOf(command.pid)
      command.signal('SIGINT', 'group')
      expect((await command.ended).code).toBe(130)
      await expectNothingLeft(processes)
    },
    timeoutMs,
  )
})

describe('the local stack', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'is stopped by %s with exit code 0, together with all it started',
    async (signal) => {
      const command = start('local', '--port', '0', '--relays', '1', '--json')
      const description = JSON.parse(await command.firstLine) as LocalStackDescription
      const { relays } = (await (await fetch(`${description.endpoint}/_local/state`)).json()) as { relays: { pid: number }[] }
      const processes = descendantsOf(command.pid)
      expect(processes.map(({ pid }) => pid)).toEqual(expect.arrayContaining(relays.map(({ pid }) => pid)))
      command.signal(signal, signal === 'SIGINT' ? 'group' : 'itself')
      const { code, out } = await command.ended
      expect(out.trimEnd().split('\n')).toHaveLength(1)
      expect(code).toBe(0)
      await expectNothingLeft(processes)
    },
    timeoutMs,
  )

  it(
    'tells a person what to paste into a shell',
    async () => {
      const command = start('local', '--port', '0', '--relays', '0')
      await command.seen('OUTBOX_CLUSTER_ARN')
      command.signal('SIGTERM')
      const { out } = await command.ended
      const endpoint = /ready at (http:\S+)\. Ctrl-C stops it/.exec(out)?.[1] ?? 'none'
      expect(out).toContain(`export AWS_ENDPOINT_URL=${endpoint} AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1\n`)
      expect(out).toContain('export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n')
      expect(out).toMatch(/^ {2}queue fifo +http.*\.fifo$/m)
    },
    timeoutMs,
  )
})
