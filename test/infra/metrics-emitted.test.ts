import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MetricName } from '../../src/core/ports.js'
import { metricCatalogue, metricNamespace } from '../../src/telemetry/metrics.js'
import { AlarmRig, emittedValues, type EmittedValue } from './alarm-rig.js'

const names = Object.keys(metricCatalogue) as MetricName[]

describe('what the real handlers emit', () => {
  let rig: AlarmRig
  const emitted: (EmittedValue & { readonly handler: string })[] = []
  const invoke = async (handler: 'relay' | 'monitor' | 'cleanup' | 'canary', event?: unknown) => {
    keep(handler, (await rig.invoke(handler, event)).logs)
  }
  const keep = (handler: string, logs: readonly string[]) => {
    emitted.push(...emittedValues(logs).map((value) => ({ ...value, handler })))
  }

  beforeAll(async () => {
    rig = await AlarmRig.start()
    await rig.begin()
    const unavailable = {
      service: 'rds-data',
      fault: { kind: 'error', name: 'DatabaseUnavailableException', status: 504 },
    } as const
    for (const handler of ['monitor', 'cleanup', 'canary', 'relay'] as const) {
      rig.stack.faults.set({ seed: 1, rules: [{ ...unavailable, times: 1 }] })
      await invoke(handler)
    }
    await rig.clients.insert('Made', '{}', 'nowhere')
    await rig.clients.execute(
      `INSERT INTO outbox (event_type, payload, headers, destination) VALUES ('Made', '{}', '{"id": "x"}', 'topic')`,
    )
    await invoke('relay')
    for (const fault of [
      { service: 'sqs', fault: { kind: 'entry-error', code: 'InvalidMessageContents', senderFault: true } },
      { service: 'sqs', fault: { kind: 'entry-missing' } },
      { service: 'sqs', fault: { kind: 'error', name: 'ServiceUnavailable', status: 503 } },
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
      await rig.clients.insert('Made', '{}', 'queue')
      rig.stack.faults.set({ seed: 1, rules: [{ ...fault, times: 1 }] })
      await invoke('relay')
    }
    rig.stack.faults.set({ seed: 1, rules: [{ service: 'sqs', fault: { kind: 'latency', ms: 4500 }, times: 1 }] })
    for (const { logs } of await rig.takeOver()) keep('relay', logs)
    await rig.crashAlone()
    await invoke('relay')
    const writtenAt = new Date(Date.now() - 2000).toISOString()
    await invoke('canary', {
      'detail-type': 'OutboxCanary',
      detail: { specversion: '1.0', time: writtenAt, data: { installation: 'local', destination: 'bus' } },
    })
  }, 240_000)
  afterAll(() => rig.stop())

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
