import { beforeEach, expect, it, vi } from 'vitest'
import { relayRig } from '../support/relay.js'
import { acceptAll, fault, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

it('what is in flight takes no place in the next claim of its batch', async () => {
  const [stuck, quick] = [new ScriptedPublisher(), new ScriptedPublisher()]
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  stuck.script = async () => {
    await released
    return fault('TimeoutError')
  }
  const write = (destination: string, count: number) =>
    rig.write(`SELECT 'Made', '{"i": ' || i || '}', NULL, '${destination}' FROM generate_series(1, ${count}) i`)
  // as many as a claim has rows, all of them in flight, in every shard
  await write('stuck', 40)
  const settings = { claimRows: 40, maxShards: 16, requestsInFlight: 4 }
  const pass = rig.pass({ publishers: { stuck, quick }, passMs: 20_000, settings })
  await vi.waitFor(() => expect(stuck.inFlight).toBe(4))
  await write('quick', 40)
  await vi.waitFor(() => expect(quick.accepted).toHaveLength(40), { timeout: 10_000 })
  expect(stuck.inFlight).toBe(4)
  stuck.script = acceptAll
  release()
  await pass
  await rig.drain({ publishers: { stuck, quick } })
  expect([stuck.accepted.length, quick.accepted.length]).toEqual([40, 40])
})
