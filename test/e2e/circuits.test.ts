import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { operatorRig } from '../support/operator-rig.js'

const { run, json, faults, relay, write, waiting } = operatorRig()
const document = readFileSync('docs/cli.md', 'utf8')

it('status tells of an open circuit since when, why, when it is tried again and what is aside, and of none when it is closed', async () => {
  expect(await json('status')).toMatchObject({ circuits: [], backlog: { openCircuits: 0, misconfiguredDestinations: 0 } })
  expect((await run('status')).out).toMatch(/^circuits +0 open$/m)

  const message = 'User: arn:aws:sts::111122223333:assumed-role/relay is not authorized to perform: sqs:SendMessage'
  await faults({ service: 'sqs', fault: { kind: 'error', name: 'AccessDenied', status: 403, message } })
  for (const nth of [1, 2, 3]) await write(nth)
  await relay()
  await relay()
  const { circuits, nowMs, backlog } = (await json('status')) as {
    readonly circuits: readonly Record<string, unknown>[]
    readonly nowMs: number
    readonly backlog: Record<string, number>
  }
  expect(circuits).toEqual([
    {
      destination: 'queue',
      state: expect.stringMatching(/^(half-)?open$/) as string,
      openedAtMs: expect.any(Number) as number,
      retryAtMs: expect.any(Number) as number,
      failures: expect.any(Number) as number,
      configuration: true,
      errorCode: 'AccessDenied',
      error: expect.stringContaining('assumed-role/relay is not authorized') as string,
      heldEvents: 2,
    },
  ])
  expect(backlog).toMatchObject({ openCircuits: 1, misconfiguredDestinations: 1, failed: 0, held: 2 })
  expect(circuits[0]!['openedAtMs']).toBeLessThanOrEqual(nowMs)
  for (const field of Object.keys(circuits[0]!)) expect(document).toContain(`\`${field}\``)
  const { out } = await run('status')
  expect(out).toMatch(/^circuits +1 open$/m)
  expect(out).toMatch(/^ {2}queue +open for .*, \d+ faults?, tried .*; 2 events aside; AccessDenied: .*is not authorized/m)

  await faults()
  await expect
    .poll(
      async () => {
        await relay()
        return waiting('queue')
      },
      { timeout: 90_000, interval: 250 },
    )
    .toBe(3)
  expect(await json('status')).toMatchObject({ circuits: [], backlog: { openCircuits: 0, depth: 0 } })
})
