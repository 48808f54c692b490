import { expect, it, vi } from 'vitest'
import { relayRig } from '../support/relay.js'
import { acceptAll, fault, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
const write = (count: number) => rig.write(`SELECT 'Made', '{}', NULL, 'a' FROM generate_series(1, ${count})`)

it('a half-open circuit lets its probe through, and nothing else, whatever is claimed with it', async () => {
  const settings = { policy: { maxAttempts: 10, baseMs: 60_000, capMs: 60_000 } }
  const a = new ScriptedPublisher()
  a.script = () => ({ ...fault('AccessDeniedException'), configuration: true })
  await write(5)
  await rig.pass({ publishers: { a }, settings })
  await write(40)
  // the cool-down is over
  await rig.api.db.query(`UPDATE outbox_circuit SET retry_at = clock_timestamp();
                          UPDATE outbox_delivery SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL`)
  const [{ probe } = { probe: '' }] = await rig.api.db.query<{ probe: string }>('SELECT probe_event AS probe FROM outbox_circuit')

  const b = new ScriptedPublisher()
  let answer = (): void => undefined
  const answered = new Promise<void>((resolve) => (answer = resolve))
  b.script = async (events, request) => {
    await answered
    return acceptAll(events, request)
  }
  const pass = rig.pass({ publishers: { a: b }, settings })
  await vi.waitFor(() => expect(b.inFlight).toBeGreaterThan(0), { timeout: 30_000 })
  const aside = async () => (await rig.status(`detail = 'held by destination:a'`)).length
  await vi.waitFor(async () => expect(await aside()).toBe(44), { timeout: 10_000 })
  expect(b.requests.map((events) => events.map(({ id }) => id))).toEqual([[probe]])

  answer()
  await pass
  await rig.drain({ publishers: { a: b } })
  expect(b.accepted).toHaveLength(45)
})
