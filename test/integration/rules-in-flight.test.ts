import { beforeEach, expect, it, vi } from 'vitest'
import type { PassOptions } from '../support/relay.js'
import { relayRig } from '../support/relay.js'
import { acceptAll, fault, ScriptedPublisher } from '../support/scripted-publisher.js'

// answers of more than 60,000 bytes are refused, so that claims that are too large happen
const rig = await relayRig({ limits: { maxResponseBytes: 60_000 } })
beforeEach(() => rig.reset())

/** Events that stay in flight, so that all shards stay leased to one batch, until `finish`. */
async function stuckBatch(events: number, settings: PassOptions['settings']) {
  const [stuck, quick] = [new ScriptedPublisher(), new ScriptedPublisher()]
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  stuck.script = async () => {
    await released
    return fault('TimeoutError')
  }
  await rig.write(`SELECT 'Made', '{}', NULL, 'stuck' FROM generate_series(1, ${events})`)
  const requests = Math.ceil(events / 10)
  const pass = rig.pass({
    publishers: { stuck, quick },
    passMs: 30_000,
    settings: { maxShards: 16, requestsInFlight: requests, ...settings },
  })
  // one that fails is seen by `finish`
  pass.catch(() => undefined)
  await vi.waitFor(() => expect(stuck.inFlight).toBe(requests), { timeout: 15_000 })
  const finish = async () => {
    expect(stuck.inFlight).toBe(requests)
    stuck.script = acceptAll
    release()
    const { telemetry } = await pass
    await rig.drain({ publishers: { stuck, quick } })
    expect(stuck.accepted).toHaveLength(events)
    return telemetry
  }
  return { quick, finish }
}

it('what is in flight takes no place in the next claim of its batch', async () => {
  // as many as a claim has rows
  const { quick, finish } = await stuckBatch(40, { claimRows: 40 })
  await rig.write(`SELECT 'Made', '{}', NULL, 'quick' FROM generate_series(1, 40)`)
  await vi.waitFor(() => expect(quick.accepted).toHaveLength(40), { timeout: 10_000 })
  await finish()
})

it('a further claim of a batch whose answer is too large is halved too, while requests are out', async () => {
  const { quick, finish } = await stuckBatch(40, {})
  await rig.api.db.query(
    `INSERT INTO outbox (event_type, payload, destination) SELECT 'Made', $1, 'quick' FROM generate_series(1, 20)`,
    [JSON.stringify(['x'.repeat(9000)])],
  )
  await vi.waitFor(() => expect(quick.accepted).toHaveLength(20), { timeout: 20_000 })
  expect((await finish()).sum('OversizeClaims')).toBeGreaterThan(0)
})
