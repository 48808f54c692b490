import { beforeEach, describe, expect, it } from 'vitest'
import { callFailures } from '../../support/call-failures.js'
import { relayRig } from '../../support/relay.js'
import { acceptAll, fault, ScriptedPublisher } from '../../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const events = 30
const write = (key: string) => rig.write(`SELECT 'Made', '{"i": ' || i || '}', ${key}, 'a' FROM generate_series(1, ${events}) i`)
const circuits = () => rig.api.db.query('SELECT state, failures, error_code FROM outbox_circuit')
const sent = (call: string) => rig.api.requests.filter(({ sql }) => sql?.includes(call) === true).length

describe.each(['outbox_circuits', 'outbox_circuit_fault', 'outbox_circuit_close'])('a call of %s that', (call) => {
  it.each(callFailures)('%s opens a circuit once, charges nobody, closes it once and loses no order', async (_, failure) => {
    const settings = { policy: { maxAttempts: 3, baseMs: 60_000, capMs: 60_000 } }
    const a = new ScriptedPublisher()
    a.script = () => ({ ...fault('AccessDeniedException'), configuration: true })
    await write('NULL')
    rig.api.requests.length = 0
    rig.api.inject({ match: call, fault: failure, times: 2 })
    await rig.pass({ publishers: { a }, settings })
    expect(await circuits()).toEqual([{ state: 'open', failures: 1, error_code: 'AccessDeniedException' }])
    expect(await rig.status('attempts > 0')).toEqual([])

    // the cool-down is over, and the destination well
    await rig.api.db.query(`UPDATE outbox_circuit SET retry_at = clock_timestamp();
                              UPDATE outbox_delivery SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL`)
    a.script = acceptAll
    await rig.drain({ publishers: { a }, settings })
    expect(sent(call)).toBeGreaterThanOrEqual(failure.kind === 'twice' ? 1 : 3)
    expect(await circuits()).toEqual([{ state: 'closed', failures: 0, error_code: null }])
    expect(await rig.status(`status = 'published' AND attempts = 1`)).toHaveLength(events)
    expect(a.accepted).toHaveLength(events)
    expect(a.order.violations).toEqual([])
  })
})

describe('a call of outbox_start that', () => {
  it.each(callFailures)('%s marks a suspect as started once, and it is sent once', async (_, failure) => {
    await write('NULL')
    await rig.api.db.query(`UPDATE outbox_delivery SET shard = 3;
      SELECT * FROM outbox_claim(gen_random_uuid(), 'gone', 500, 700000, 50, 16, 30, NULL);
      UPDATE outbox_shard SET lease_until = '-infinity' WHERE lease_token IS NOT NULL`)
    const a = new ScriptedPublisher()
    const started: unknown[] = []
    a.script = async (taken, request) => {
      started.push(...(await rig.api.db.query('SELECT event_id AS id, starts FROM outbox_delivery WHERE starts > 0')))
      return acceptAll(taken, request)
    }
    rig.api.requests.length = 0
    rig.api.inject({ match: 'outbox_start', fault: failure, times: 2 })
    await rig.drain({ publishers: { a } })
    expect(sent('outbox_start')).toBeGreaterThanOrEqual(failure.kind === 'twice' ? events : events + 2)
    expect(started).toEqual(a.requests.map(([event]) => ({ id: event!.id, starts: 1 })))
    expect(await rig.status(`status = 'published' AND attempts = 1`)).toHaveLength(events)
    expect(a.accepted).toHaveLength(events)
  })
})
