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

/** What each batch claimed: its token -> rows and bytes of payloads. */
function countClaims() {
  const batches = new Map<string, { rows: number; bytes: number }>()
  const store: OutboxStore = {
    ...rig.store,
    claim: async (request, options) => {
      const answer = await rig.store.claim(request, options)
      const { rows, bytes } = batches.get(request.token) ?? { rows: 0, bytes: 0 }
      const more = answer.events.reduce((sum, { payloadBytes }) => sum + payloadBytes, 0)
      if (answer.events.length > 0) batches.set(request.token, { rows: rows + answer.events.length, bytes: bytes + more })
      return answer
    },
  }
  const most = (of: 'rows' | 'bytes') => Math.max(...[...batches.values()].map((batch) => batch[of]))
  return { store, batches, most }
}

it.each([
  { of: 'rows', payload: `'{}'`, claimRows: 20, claimBytes: 700_000 },
  { of: 'bytes', payload: `'{"x": "' || repeat('x', 3990) || '"}'`, claimRows: 500, claimBytes: 64_000 },
] as const)(
  'a relay whose destination does not answer holds at most 16 batches, each with less than three claims of $of, however many wait',
  async ({ of, payload, claimRows, claimBytes }) => {
    // each shard has keys, and each key a long chain that waits behind its first event
    await rig.write(`SELECT 'Made', ${payload}, 'k' || i % 100, NULL FROM generate_series(1, 3000) i`)
    const { store, batches, most } = countClaims()
    const publishers = { queue: new ScriptedPublisher(), other: new ScriptedPublisher() }
    publishers.queue.script = hangs()
    const settings = { profile: 'continuous', claimRows, claimBytes } as const
    await rig.pass({ publishers, settings, store, passMs })
    expect(batches.size).toBeLessThanOrEqual(16)
    const claim = { rows: claimRows, bytes: claimBytes }[of]
    expect(most(of)).toBeGreaterThan(claim) // it did claim on
    expect(most(of)).toBeLessThan(3 * claim)
  },
)

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
