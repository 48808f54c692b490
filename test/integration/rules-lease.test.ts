import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { OutboundEvent } from '../../src/core/event.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'
import { relayRig } from '../support/relay.js'
import { accepted, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const number = (event: OutboundEvent) => (JSON.parse(event.payload) as { i: number }).i

describe('a relay that learns from a renewal that its lease is lost', () => {
  it('sends nothing more, says so once, and records nothing', async () => {
    const queue = new ScriptedPublisher()
    let answer = (): void => undefined
    const answered = new Promise<void>((resolve) => (answer = resolve))
    queue.script = async (events) => {
      await answered
      return { kind: 'answered', entries: events.map(accepted) }
    }
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', 'k', NULL FROM generate_series(1, 3) i`)
    const telemetry = new RecordingTelemetry()
    // renewed after 2 s; then there would be time enough for the second event of the key
    const pass = rig.pass({ publishers: { queue }, telemetry, settings: { leaseSeconds: 6, requestTimeoutMs: 100 } })
    await vi.waitFor(() => expect(queue.inFlight).toBe(1), { timeout: 15_000 })
    await rig.api.db.query(
      `UPDATE outbox_shard SET lease_token = gen_random_uuid(), lease_until = now() + interval '1 minute' WHERE lease_token IS NOT NULL`,
    )
    await vi.waitFor(() => expect(rig.api.requests.some(({ sql }) => sql?.includes('outbox_renew'))).toBe(true), {
      timeout: 10_000,
    })
    await vi.waitFor(() => expect(telemetry.logged('lease-lost')).toHaveLength(1), { timeout: 1000 })
    answer()
    const { totals } = await pass
    expect(queue.requests.map((events) => events.map(number))).toEqual([[1]])
    expect(totals).toMatchObject({ published: 0, retried: 0, leaseLost: 1 })
    expect(telemetry.logged('lease-lost')).toEqual([{ shards: 1, noticedBy: 'renew' }])
    expect(telemetry.sum('LeaseLost')).toBe(1)
    expect((await rig.status(`status = 'pending'`)).map(({ attempts }) => attempts)).toEqual([0, 0, 0])
  })
})
