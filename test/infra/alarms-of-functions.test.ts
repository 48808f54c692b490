import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { AlarmRig } from './alarm-rig.js'

let rig: AlarmRig
beforeAll(async () => {
  rig = await AlarmRig.start()
}, 120_000)
afterAll(() => rig.stop())

const relay = () => rig.invoke('relay')
const monitor = () => rig.invoke('monitor')

beforeEach(async () => {
  await rig.begin()
  // its normal life
  await rig.periods(3, async () => {
    await relay()
    await monitor()
  })
  rig.watch()
})

describe('the alarm on a silent relay', () => {
  it('goes off when the relay is stopped, while the monitor goes on, and clears with its first pass', async () => {
    await rig.periods(12, monitor)
    rig.expectStates('relaySilent', ['OK', 'ALARM'])
    await rig.periods(3, relay)
    rig.expectStates('relaySilent', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('goes off when passes begin and none completes', async () => {
    rig.stack.faults.set({ seed: 1, rules: [accessDenied] })
    await rig.periods(12, relay)
    rig.expectStates('relaySilent', ['OK', 'ALARM'])
  }, 120_000)

  it('stays off when a tick or two are lost', async () => {
    await rig.periods(2)
    await rig.periods(2, relay)
    rig.expectStates('relaySilent', ['OK'])
  }, 120_000)
})

describe('the alarm on a silent monitor', () => {
  it('goes off when the monitor is stopped, while the relay goes on, and clears with its first measurement', async () => {
    await rig.periods(12, relay)
    rig.expectStates('monitorSilent', ['OK', 'ALARM'])
    rig.expectStates('relaySilent', ['OK'])
    await rig.periods(3, monitor)
    rig.expectStates('monitorSilent', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('goes off when the monitor cannot reach the database', async () => {
    rig.stack.faults.set({ seed: 1, rules: [accessDenied] })
    await rig.periods(12, monitor)
    rig.expectStates('monitorSilent', ['OK', 'ALARM'])
  }, 120_000)
})

describe('the alarm on errors and timeouts of the relay', () => {
  it('goes off when invocations throw again and again, and clears when they do not', async () => {
    rig.stack.faults.set({ seed: 1, rules: [accessDenied] })
    await rig.periods(1, relay)
    rig.stack.faults.clear()
    await rig.periods(5, relay)
    rig.expectStates('relayErrors', ['OK'])
    rig.stack.faults.set({ seed: 1, rules: [accessDenied] })
    await rig.periods(5, relay)
    rig.expectStates('relayErrors', ['OK', 'ALARM'])
    rig.stack.faults.clear()
    await rig.periods(6, relay)
    rig.expectStates('relayErrors', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('goes off when invocations are killed by their timeout', async () => {
    const { queue: queueUrl } = rig.stack.description.queues
    const settings = { OUTBOX_DESTINATIONS: JSON.stringify({ queue: { type: 'sqs', queueUrl } }) }
    const frozen = rig.configured('relay', settings, 1)
    await rig.periods(5, async () => {
      // its process is there, and has served; the next invocation meets it frozen
      await frozen.invoke()
      const invocation = frozen.invoke()
      frozen.processes[0]!.signal('SIGSTOP')
      const result = rig.record('relay', await invocation)
      expect(result.error?.name).toBe('Sandbox.Timedout')
    })
    rig.expectStates('relayErrors', ['OK', 'ALARM'])
    await rig.periods(6, relay)
    rig.expectStates('relayErrors', ['OK', 'ALARM', 'OK'])
  }, 120_000)
})

describe('the alarms on throttles and dropped ticks', () => {
  it('go off when the relay finds no concurrency, and clear when it does', async () => {
    await rig.periods(5, () => {
      rig.refuse('relay')
      return Promise.resolve()
    })
    rig.expectStates('relayThrottled', ['OK', 'ALARM'])
    rig.expectStates('ticksDropped', ['OK', 'ALARM'])
    await rig.periods(10, relay)
    rig.expectStates('relayThrottled', ['OK', 'ALARM', 'OK'])
    rig.expectStates('ticksDropped', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('stay off when one tick is dropped, for another follows', async () => {
    rig.refuse('relay')
    await rig.periods(8, relay)
    rig.expectStates('relayThrottled', ['OK'])
    rig.expectStates('ticksDropped', ['OK'])
  }, 120_000)
})

describe('the alarm on errors of the Data API', () => {
  const unavailable = {
    service: 'rds-data',
    fault: { kind: 'error', name: 'DatabaseUnavailableException', status: 504 },
    times: 2,
  } as const

  it('goes off when calls fail again and again, though each is repeated with success, and clears when none fails', async () => {
    await rig.periods(5, async () => {
      rig.stack.faults.set({ seed: 1, rules: [unavailable] })
      expect((await relay()).error).toBeNull()
    })
    rig.expectStates('dataApiErrors', ['OK', 'ALARM'])
    rig.expectStates('relayErrors', ['OK'])
    rig.stack.faults.clear()
    await rig.periods(10, relay)
    rig.expectStates('dataApiErrors', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('stays off while a cluster resumes, at each tick', async () => {
    await rig.periods(5, async () => {
      rig.stack.faults.set({ seed: 1, rules: [{ service: 'rds-data', fault: { kind: 'resuming', seconds: 0.5 }, times: 1 }] })
      expect((await relay()).error).toBeNull()
    })
    rig.expectStates('dataApiErrors', ['OK'])
  }, 120_000)
})

describe('the alarm on cleanup', () => {
  const HOUR = 3600
  const cleanup = () => rig.invoke('cleanup')

  beforeEach(async () => {
    await rig.begin()
    await rig.periods(3, cleanup, HOUR)
    rig.watch()
  })

  it('goes off when none has run for a day, and clears with the first', async () => {
    await rig.periods(20, undefined, HOUR)
    rig.expectStates('cleanupOverdue', ['OK'])
    await rig.periods(12, undefined, HOUR)
    rig.expectStates('cleanupOverdue', ['OK', 'ALARM'])
    await rig.periods(3, cleanup, HOUR)
    rig.expectStates('cleanupOverdue', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('goes off when its time was over for a day before all was deleted, and clears when it catches up', async () => {
    // 12 s of its time are kept back, so half a second is left
    const short = rig.configured('cleanup', { OUTBOX_RETENTION_SECONDS: '60', OUTBOX_CLEANUP_ROWS: '100' }, 12.5)
    await rig.database.query(
      `INSERT INTO outbox_receipt (event_id, attempts, replays, delivered_at) SELECT gen_random_uuid(), 1, 0, now() - interval '1 day' FROM generate_series(1, 5000)`,
    )
    rig.stack.faults.set({
      seed: 1,
      rules: [{ service: 'rds-data', match: 'outbox_cleanup', fault: { kind: 'latency', ms: 300 } }],
    })
    for (let hour = 0; hour < 24; hour++) {
      const { result, error } = rig.record('cleanup', await short.invoke())
      expect(error).toBeNull()
      expect(result).toMatchObject({ behind: true })
      await rig.pass(HOUR)
    }
    rig.expectStates('cleanupOverdue', ['OK', 'ALARM'])
    rig.stack.faults.clear()
    await rig.database.query('DELETE FROM outbox_receipt')
    await rig.periods(2, cleanup, HOUR)
    rig.expectStates('cleanupOverdue', ['OK', 'ALARM', 'OK'])
  }, 180_000)
})

const accessDenied = {
  service: 'rds-data',
  fault: { kind: 'error', name: 'AccessDeniedException', status: 403 },
} as const
