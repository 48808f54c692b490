import { describe, expect, it } from 'vitest'
import { Faults, type FaultSubject } from '../../src/local/faults/faults.js'
import type { FaultSetting } from '../../src/local/faults/rules.js'

const batch = (...texts: string[]): FaultSubject => ({
  service: 'sqs',
  operation: 'SendMessageBatch',
  entries: texts.map((text) => ({ resource: 'fifo.fifo', text })),
  takes: 'batch',
})
const statement = (text: string): FaultSubject => ({
  service: 'rds-data',
  operation: 'ExecuteStatement',
  entries: [{ resource: '', text }],
  takes: 'none',
})

function faults(setting: FaultSetting, nowMs: () => number = () => 0): Faults {
  const made = new Faults((name) => (name === 'fifo' ? 'fifo.fifo' : name), nowMs)
  made.set(setting)
  return made
}

describe('fault rules', () => {
  it('strike the same requests again with the same seed, others with another', () => {
    const rule = { service: 'sqs', rate: 0.5, fault: { kind: 'reset' } } as const
    const struck = (seed: number) => {
      const made = faults({ seed, rules: [rule] })
      return Array.from({ length: 64 }, () => made.plan(batch('a')).refusal === 'reset')
    }
    expect(struck(7)).toEqual(struck(7))
    expect(struck(7)).not.toEqual(struck(8))
    expect(struck(7).filter(Boolean).length).toBeGreaterThan(16)
    expect(struck(7).filter(Boolean).length).toBeLessThan(48)
  })

  it('throw dice for each entry of its own, not for the request', () => {
    const made = faults({ seed: 3, rules: [{ service: 'sqs', rate: 0.5, fault: { kind: 'entry-missing' } }] })
    const sizes = Array.from({ length: 20 }, () => made.plan(batch('a', 'b', 'c', 'd', 'e', 'f')).decisions.size)
    expect(new Set(sizes).size).toBeGreaterThan(2)
  })

  it('rest after `times` hits, and count them', () => {
    const made = faults({ rules: [{ service: 'sqs', times: 3, fault: { kind: 'entry-error', code: 'X' } }] })
    expect(made.plan(batch('a', 'b')).decisions.size).toBe(2)
    expect(made.plan(batch('a', 'b')).decisions.size).toBe(1)
    expect(made.plan(batch('a', 'b')).decisions.size).toBe(0)
    expect(made.get().rules[0]).toMatchObject({ hits: 3, times: 3, rate: 1 })
  })

  it('look only at their service, operation, destination and text', () => {
    const made = faults({
      rules: [
        { service: 'sqs', operation: 'SendMessageBatch', destination: 'fifo', match: 'poison', fault: { kind: 'swallow' } },
      ],
    })
    expect([...made.plan(batch('fine', 'a poison pill')).decisions]).toEqual([[1, { kind: 'swallow' }]])
    expect(made.plan({ ...batch('poison'), operation: 'SendMessage' }).decisions.size).toBe(0)
    expect(made.plan({ ...batch('poison'), service: 'sns' }).decisions.size).toBe(0)
    expect(made.plan({ ...batch('poison'), entries: [{ resource: 'queue', text: 'poison' }] }).decisions.size).toBe(0)
    expect(made.get().rules[0]!.hits).toBe(1)
  })

  it('refuse a request with the first rule that does, and charge no entry rule for it', () => {
    const made = faults({
      rules: [
        { service: 'sqs', fault: { kind: 'entry-missing' } },
        { service: 'sqs', fault: { kind: 'latency', ms: 20 } },
        { service: 'sqs', fault: { kind: 'throttle' } },
        { service: 'sqs', fault: { kind: 'reset' } },
      ],
    })
    expect(made.plan(batch('a'))).toMatchObject({ latencyMs: 20, refusal: { name: 'RequestThrottled' }, dropReply: false })
    expect(made.get().rules.map(({ hits }) => hits)).toEqual([0, 1, 1, 0])
  })

  it('cannot make the one message of a single send missing, nor take anything out of a call that sends nothing', () => {
    const rules = [
      { service: 'sqs', fault: { kind: 'entry-missing' } } as const,
      { service: 'sqs', fault: { kind: 'swallow' } } as const,
    ]
    const made = faults({ rules })
    expect([...made.plan({ ...batch('a'), operation: 'SendMessage', takes: 'single' }).decisions]).toEqual([
      [0, { kind: 'swallow' }],
    ])
    expect(made.plan({ ...batch('a'), operation: 'ReceiveMessage', takes: 'none' }).decisions.size).toBe(0)
  })

  it('let a database resume from the first call on, once', () => {
    let now = 1000
    const made = faults({ rules: [{ service: 'rds-data', fault: { kind: 'resuming', seconds: 20 } }] }, () => now)
    const refused = () => made.plan(statement('select 1')).refusal !== undefined
    now = 50_000
    expect(refused()).toBe(true)
    now = 69_999
    expect(refused()).toBe(true)
    now = 70_000
    expect(refused()).toBe(false)
    now = 900_000
    expect(refused()).toBe(false)
    expect(made.get().rules[0]!.hits).toBe(1)
  })

  it('are gone after clear, and count from 0 when set again', () => {
    const made = faults({ rules: [{ service: 'sqs', fault: { kind: 'reset' } }] })
    made.plan(batch('a'))
    made.set({ rules: [{ service: 'sqs', fault: { kind: 'reset' } }] })
    expect(made.get().rules[0]!.hits).toBe(0)
    made.clear()
    expect(made.plan(batch('a')).refusal).toBeUndefined()
  })

  it.each<[string, unknown]>([
    ['an unknown service', { service: 's3', fault: { kind: 'reset' } }],
    ['an unknown kind', { service: 'sqs', fault: { kind: 'explode' } }],
    ['a rate above 1', { service: 'sqs', rate: 1.5, fault: { kind: 'reset' } }],
    ['a field that does not exist', { service: 'sqs', oparation: 'SendMessage', fault: { kind: 'reset' } }],
    ['resuming for a service that never sleeps', { service: 'sqs', fault: { kind: 'resuming', seconds: 1 } }],
    ['an entry fault for the database', { service: 'rds-data', fault: { kind: 'swallow' } }],
    ['a destination for the database', { service: 'rds-data', destination: 'queue', fault: { kind: 'reset' } }],
  ])('are refused with %s', (_what, rule) => {
    expect(() => faults({ rules: [rule] } as FaultSetting)).toThrow()
  })
})
