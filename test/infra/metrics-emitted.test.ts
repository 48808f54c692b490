import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MetricName } from '../../src/core/ports.js'
import { metricCatalogue, metricNamespace } from '../../src/telemetry/metrics.js'
import { AlarmRig, emittedValues, type EmittedValue } from './alarm-rig.js'

const names = Object.keys(metricCatalogue) as MetricName[]

describe('what the real handlers emit', () => {
  let rig: AlarmRig
  const emitted: (EmittedValue & { readonly handler: string })[] = []
  const invoke = async (handler: 'relay' | 'monitor' | 'cleanup' | 'canary', event?: unknown) => {
    const { logs } = await rig.invoke(handler, event)
    emitted.push(...emittedValues(logs).map((value) => ({ ...value, handler })))
  }

  beforeAll(async () => {
    rig = await AlarmRig.start()
    await rig.begin()
    await invoke('monitor')
    await invoke('cleanup')
    await rig.clients.insert('Made', '{}', 'nowhere')
    await rig.clients.execute(
      `INSERT INTO outbox (event_type, payload, headers, destination) VALUES ('Made', '{}', '{"id": "x"}', 'topic')`,
    )
    await invoke('relay')
    for (const fault of [
      { service: 'sqs', fault: { kind: 'entry-error', code: 'InvalidMessageContents', senderFault: true } },
      { service: 'sqs', fault: { kind: 'entry-missing' } },
      { service: 'sqs', fault: { kind: 'error', name: 'ServiceUnavailable', status: 503 } },
      { service: 'rds-data', fault: { kind: 'error', name: 'DatabaseUnavailableException', status: 504 } },
      {
        service: 'rds-data',
        match: 'outbox_claim',
        fault: {
          kind: 'error',
          name: 'DatabaseErrorException',
          message: 'Database returned more than the allowed response size limit',
        },
      },
    ] as const) {
      rig.stack.faults.set({ seed: 1, rules: [{ ...fault, times: 1 }] })
      await rig.clients.insert('Made', '{}', 'queue')
      await invoke('relay')
    }
    await takeOver()
    await invoke('canary')
    const writtenAt = new Date(Date.now() - 2000).toISOString()
    await invoke('canary', {
      'detail-type': 'OutboxCanary',
      detail: { specversion: '1.0', time: writtenAt, data: { installation: 'local', destination: 'bus' } },
    })
  }, 240_000)
  afterAll(() => rig.stop())

  /** Another relay takes over the shard while this one waits for a slow queue. */
  async function takeOver(): Promise<void> {
    rig.stack.faults.set({ seed: 1, rules: [{ service: 'sqs', fault: { kind: 'latency', ms: 3000 }, times: 1 }] })
    await rig.clients.insert('Made', '{}', 'queue')
    const slow = invoke('relay')
    await expect
      .poll(async () => (await rig.database.query(`SELECT FROM outbox_shard WHERE lease_until > now()`)).rowCount, {
        timeout: 60_000,
      })
      .toBeGreaterThan(0)
    await rig.database.query(`UPDATE outbox_shard SET lease_until = now() - interval '1 s' WHERE lease_until > now()`)
    await invoke('relay')
    await slow
  }

  it.each(names)('%s comes from its function, with its unit and its dimensions', (name) => {
    const { emittedBy, unit, byDestination } = metricCatalogue[name]
    const own = emitted.filter((value) => value.name === name)
    expect(own.length).toBeGreaterThan(0)
    const handlers = new Set(own.map(({ handler }) => handler))
    expect([...handlers].sort()).toEqual(emittedBy === 'all' ? ['canary', 'cleanup', 'monitor', 'relay'] : [emittedBy])
    expect(new Set(own.map((value) => value.unit))).toEqual(new Set([unit]))
    for (const { namespace, dimensions } of own) {
      expect(namespace).toBe(metricNamespace)
      expect(Object.keys(dimensions).sort()).toEqual(byDestination ? ['destination', 'service'] : ['service'])
      expect(dimensions.service).toBe('local')
    }
  })

  it('nothing comes that the catalogue does not have', () => {
    expect([...new Set(emitted.map(({ name }) => name))].filter((name) => !Object.hasOwn(metricCatalogue, name))).toEqual([])
  })
})
