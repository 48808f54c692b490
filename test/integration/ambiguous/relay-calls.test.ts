import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { PublishAnswer } from '../../../src/core/outcome.js'
import { callFailures } from '../../support/call-failures.js'
import { relayRig } from '../../support/relay.js'
import { accepted, ScriptedPublisher } from '../../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const events = 60
const calls = ['outbox_claim', 'outbox_renew', 'outbox_payload_chunks', 'outbox_settle'] as const

describe.each(calls)('a call of %s that', (call) => {
  it.each(callFailures)('%s leaves every event published once, recorded once, in order', async (_, fault) => {
    const queue = new ScriptedPublisher()
    const sent = () => rig.api.requests.filter(({ sql }) => sql?.includes(call) === true).length
    // a destination that is slow enough for renewals, where they are what fails
    queue.script = async (taken, request): Promise<PublishAnswer> => {
      if (call === 'outbox_renew' && request === 1) await vi.waitFor(() => expect(sent()).toBeGreaterThan(2), 60_000)
      return { kind: 'answered', entries: taken.map(accepted) }
    }
    await rig.write(`SELECT 'Made', '{"i": ' || i || '}', 'key-' || i % 9, NULL FROM generate_series(1, ${events - 1}) i`)
    // too large for a claim: it is fetched
    await rig.write(`SELECT 'Made', '{"x": "' || repeat('x', 60000) || '"}', 'key-3', NULL`)
    rig.api.requests.length = 0
    rig.api.inject({ match: call, fault, times: 2 })

    const { totals, telemetry } = await rig.pass({
      publishers: { queue },
      passMs: 60_000,
      settings: call === 'outbox_renew' ? { leaseSeconds: 4, requestTimeoutMs: 500 } : {},
    })
    expect(sent()).toBeGreaterThanOrEqual(fault.kind === 'twice' ? 1 : 2)
    expect(queue.acceptedIds().sort()).toEqual(
      (await rig.status(`status = 'published' AND attempts = 1`)).map(({ id }) => id).sort(),
    )
    expect(queue.accepted).toHaveLength(events)
    expect(queue.order.violations).toEqual([])
    expect(totals).toMatchObject({ published: events, retried: 0, failed: 0, leaseLost: 0 })
    expect(telemetry.sum('Published')).toBe(events)
    expect(await rig.api.db.query('SELECT 1 FROM outbox_delivery')).toEqual([])
    expect(await rig.api.db.query('SELECT 1 FROM outbox_shard WHERE lease_token IS NOT NULL')).toEqual([])
  })
})
