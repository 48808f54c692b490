import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

/** Seconds that `CanaryAge` has, by destination, in the order in which the canary printed them. */
function ages(lines: readonly string[]): { readonly destination: string; readonly seconds: number }[] {
  return lines
    .filter((line) => line.startsWith('canary {') && line.includes('"CanaryAge"') && line.includes('CloudWatchMetrics'))
    .map((line) => JSON.parse(line.slice('canary '.length)) as { destination: string; CanaryAge: number | number[] })
    .map(({ destination, CanaryAge }) => ({ destination, seconds: [CanaryAge].flat()[0]! }))
}

describe('the canary of a local stack', () => {
  let directory: string
  let stack: LocalStack
  let clients: OutboxClients
  const lines: string[] = []

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outbox-canary-'))
    const configFile = join(directory, 'config.json')
    const bus = (format: string) => ({ type: 'eventbridge', eventBusName: format, format })
    const queue = { type: 'sqs', queueUrl: 'queue' }
    await writeFile(
      configFile,
      JSON.stringify({ destinations: { bus: bus('cloudevents'), raw: bus('raw'), queue }, default: 'queue', source: 'shop' }),
    )
    stack = await startLocalStack({ port: 0, relays: 0, configFile, log: (line) => lines.push(line) })
    clients = outboxClients(stack.description)
  })
  afterAll(async () => {
    clients.destroy()
    await stack.stop()
    await rm(directory, { recursive: true })
  })

  /** Writes a canary for each bus, and moves them. */
  async function fly(): Promise<void> {
    const written = await stack.invoke('canary')
    expect(written).toMatchObject({ error: null, result: { kind: 'written', destinations: ['bus', 'raw'] } })
    expect((await stack.invoke('relay')).error).toBeNull()
    expect((await stack.state()).backlog).toMatchObject({ depth: 0, failed: 0 })
  }
  const backFrom = (destination: string) => ages(lines).filter((age) => age.destination === destination)
  const canariesBack = (count: number) =>
    expect.poll(() => [backFrom('bus').length, backFrom('raw').length], { timeout: 60_000 }).toEqual([count, count])

  it('comes back from each bus, by the outbox, the relay and a rule, and tells its age', async () => {
    await fly()
    await canariesBack(1)
    for (const { seconds } of ages(lines)) {
      expect(seconds).toBeGreaterThanOrEqual(0)
      expect(seconds).toBeLessThan(120)
    }
    const { records } = await clients.execute(
      "SELECT status, destination FROM outbox_status WHERE event_type = 'OutboxCanary' ORDER BY destination",
    )
    expect(records).toEqual(['bus', 'raw'].map((name) => [{ stringValue: 'published' }, { stringValue: name }]))
  })

  it('was written by a user that may do no more than insert', async () => {
    const { records } = await clients.execute(
      `SELECT has_table_privilege('local_canary', 'outbox', 'INSERT'), has_table_privilege('local_canary', 'outbox', 'SELECT, UPDATE, DELETE'),
         has_table_privilege('local_canary', 'outbox_delivery', 'SELECT')`,
    )
    expect(records).toEqual([[{ booleanValue: true }, { booleanValue: false }, { booleanValue: false }]])
  })

  it('does not come back from a bus that swallows, though all is recorded as published; and does so again when it is healed', async () => {
    const before = backFrom('bus').length
    stack.faults.set({ rules: [{ service: 'events', destination: 'bus', fault: { kind: 'swallow' } }] })
    await fly()
    await fly()
    await canariesBackFromRaw(before + 2)
    expect(stack.faults.get().rules[0]!.hits).toBe(2)
    stack.faults.clear()
    await fly()
    await canariesBackFromRaw(before + 3)
    await expect.poll(() => backFrom('bus').length, { timeout: 60_000 }).toBeGreaterThan(before)
    // one, and not three: what was swallowed is gone
    expect(backFrom('bus')).toHaveLength(before + 1)
    const { records } = await clients.execute(
      "SELECT count(*) FROM outbox_status WHERE event_type = 'OutboxCanary' AND destination = 'bus' AND status = 'published'",
    )
    expect(records).toEqual([[{ longValue: 4 }]])
  })
  const canariesBackFromRaw = (count: number) => expect.poll(() => backFrom('raw').length, { timeout: 60_000 }).toBe(count)

  it('never answers a canary with another one', async () => {
    const canaries = () => clients.execute("SELECT count(*) FROM outbox WHERE event_type = 'OutboxCanary'")
    const { records } = await canaries()
    const back = await stack.invoke('canary', {
      'detail-type': 'OutboxCanary',
      source: 'shop',
      time: new Date().toISOString(),
      detail: { installation: 'somebody-else', destination: 'bus' },
    })
    expect(back).toMatchObject({ error: null, result: { kind: 'ignored' } })
    expect((await canaries()).records).toEqual(records)
  })
})
