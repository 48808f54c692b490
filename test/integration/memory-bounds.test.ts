import { beforeEach, expect, it } from 'vitest'
import type { OutboxStore } from '../../src/core/ports.js'
import { relayRig } from '../support/relay.js'
import { accepted, ScriptedPublisher, type Script } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const passMs = 4000
/** Answers nothing before the pass has ended: until then all that was claimed is in hand. */
function hangs(): Script {
  const ended = new Promise<void>((resolve) => setTimeout(resolve, passMs))
  return async (events) => {
    await ended
    return { kind: 'answered', entries: events.map(accepted) }
  }
}

it('a relay whose destination does not answer holds so many events as 16 claims bring, however many wait', async () => {
  const claimRows = 20
  await rig.write(`SELECT 'Made', '{}', NULL, NULL FROM generate_series(1, 2000)`)
  const queue = new ScriptedPublisher()
  queue.script = hangs()
  const { totals } = await rig.pass({ publishers: { queue }, settings: { profile: 'continuous', claimRows }, passMs })
  expect(totals.claimed).toBeGreaterThan(claimRows)
  expect(totals.claimed).toBeLessThanOrEqual(16 * claimRows)
})

it('a large payload is fetched when its request begins: so many are in memory as requests are out', async () => {
  const requestsInFlight = 3
  await rig.write(`SELECT 'Made', '{"x": "' || repeat('x', 60000) || '"}', NULL, NULL FROM generate_series(1, 40)`)
  let fetched = 0
  const store: OutboxStore = {
    ...rig.store,
    readPayload: (...given) => {
      fetched += 1
      return rig.store.readPayload(...given)
    },
  }
  const queue = new ScriptedPublisher()
  queue.script = hangs()
  const { totals } = await rig.pass({
    publishers: { queue },
    settings: { profile: 'continuous', requestsInFlight },
    store,
    passMs,
  })
  expect(totals.claimed).toBe(40)
  const sent = queue.requests.flat().length
  expect(queue.requests).toHaveLength(requestsInFlight)
  expect(fetched).toBe(sent)
})
