import { describe, expect, it } from 'vitest'
import { blameOf } from '../../../chaos/faults.js'
import { readChaosOptions } from '../../../chaos/options.js'
import { operationsOf, payloadOf } from '../../../chaos/operations.js'
import { scenarioNames, scenarios } from '../../../chaos/scenarios.js'
import { scheduleOf } from '../../../chaos/schedule.js'

const options = { seed: 7, seconds: 60, relays: 4, writers: 8, scenario: 'mixed' } as const

describe('a seed', () => {
  it('gives the same schedule and the same writers each time, another one others', () => {
    expect(scheduleOf(options)).toEqual(scheduleOf(options))
    expect(operationsOf(options, 0)).toEqual(operationsOf(options, 0))
    expect(scheduleOf({ ...options, seed: 8 })).not.toEqual(scheduleOf(options))
    expect(operationsOf({ ...options, seed: 8 }, 0)).not.toEqual(operationsOf(options, 0))
    expect(operationsOf(options, 1)).not.toEqual(operationsOf(options, 0))
  })

  it('gives each scenario a part of the same schedule', () => {
    const mixed = scheduleOf(options)
    for (const scenario of scenarioNames) {
      const { phases, blows, operators } = scheduleOf({ ...options, scenario })
      expect(mixed.blows).toEqual(expect.arrayContaining([...blows]))
      expect([mixed.operators, []]).toContainEqual(operators)
      phases.forEach((phase, index) => {
        expect(mixed.phases[index]?.atMs).toBe(phase.atMs)
        expect(mixed.phases[index]?.rules).toEqual(expect.arrayContaining([...phase.rules]))
      })
    }
  })
})

describe('a schedule', () => {
  it('has every fault but swallow, on all four services, and every blow', () => {
    const { phases, blows, operators, clockShiftsMs } = scheduleOf({ ...options, seconds: 600, relays: 16 })
    const kinds = (service: string) =>
      new Set(phases.flatMap(({ rules }) => rules.filter((rule) => rule.service === service).map(({ fault }) => fault.kind)))
    const ofRequests = ['drop-reply', 'error', 'latency', 'reset', 'throttle']
    const ofEntries = ['entry-error', 'entry-missing']
    for (const service of ['sqs', 'sns', 'events'])
      expect([...kinds(service)].sort()).toEqual([...ofRequests, ...ofEntries].sort())
    expect([...kinds('rds-data')].sort()).toEqual([...ofRequests, 'resuming'].sort())
    expect(new Set(blows.map(({ kind }) => kind))).toEqual(
      new Set(['kill', 'freeze', 'timeout', 'deploy', 'kill-all', 'crash-database']),
    )
    expect(new Set(operators.map(({ action }) => action))).toEqual(new Set(['redrive', 'discard', 'release', 'replay']))
    expect(clockShiftsMs.some((shift) => Math.abs(shift) > 3_600_000)).toBe(true)
    expect(clockShiftsMs).toContain(0)
  })

  it.each(['mixed', 'database', 'processes'] as const)('has each kind of its blows in a run of 10 s too: %s', (scenario) => {
    const { blows } = scheduleOf({ ...options, seconds: 10, scenario })
    const { processes, databaseCrashes } = scenarios[scenario]
    const expected = [
      ...(processes ? ['kill', 'freeze', 'timeout', 'deploy', 'kill-all'] : []),
      ...(databaseCrashes ? ['crash-database'] : []),
    ]
    expect(new Set(blows.map(({ kind }) => kind))).toEqual(new Set(expected))
  })

  it('knows whom each injected error of an entry blames', () => {
    const codes = scheduleOf({ ...options, seconds: 600 }).phases.flatMap(({ rules }) =>
      rules.flatMap(({ fault }) => (fault.kind === 'entry-error' ? [fault.code] : [])),
    )
    expect(codes.filter((code) => blameOf[code] === undefined)).toEqual([])
  })
})

describe('writers', () => {
  const all = Array.from({ length: 8 }, (_, writer) => operationsOf({ seed: 7, seconds: 600 }, writer)).flat()
  const events = all.flatMap((one) => one.events)

  it('commit and roll back, through the writer and by plain SQL, long and short, once and again', () => {
    for (const by of ['writer', 'sql'] as const)
      for (const end of ['commit', 'rollback'] as const) expect(all.some((one) => one.by === by && one.end === end)).toBe(true)
    expect(all.some(({ holdMs }) => holdMs > 5_000)).toBe(true)
    expect(all.some(({ idempotent }) => idempotent)).toBe(true)
  })

  it('write to every destination, with and without a key, from bytes to 1 MiB and to what nobody takes, by wrong clocks', () => {
    expect(new Set(events.map(({ destination }) => destination))).toEqual(new Set(['queue', 'fifo', 'topic', 'bus', null]))
    expect(new Set(events.map(({ key }) => key === null))).toEqual(new Set([true, false]))
    const bytes = events.map((event) => Buffer.byteLength(payloadOf(event, 1, 1)))
    expect(Math.min(...bytes)).toBeLessThan(100)
    expect(bytes.some((count) => count > 900_000 && count < 1_000_000)).toBe(true)
    expect(bytes.some((count) => count > 1_048_576)).toBe(true)
    expect(events.some(({ createdOffMs }) => (createdOffMs ?? 0) > 36_000_000)).toBe(true)
    expect(events.some(({ availableInMs }) => (availableInMs ?? 0) < -3_600_000)).toBe(true)
  })

  it('write enough: in 600 s more than 20,000 events that are committed', () => {
    const committed = all.filter(({ end }) => end === 'commit').flatMap((one) => one.events)
    expect(committed.length).toBeGreaterThan(25_000)
  })
})

describe('the command line', () => {
  it('takes a new seed if none is given', () => {
    expect(readChaosOptions([], 4711)).toMatchObject({ seed: 4711, seconds: 60, scenario: 'mixed', output: 'text' })
    expect(readChaosOptions(['--seed', '0', '--json'], 4711)).toMatchObject({ seed: 0, output: 'json' })
  })

  it.each([
    [['--seconds', '0'], '--seconds is "0"; allowed: a whole number from 1 to 86400'],
    [['--relays', 'many'], '--relays is "many"; allowed: a whole number from 1 to 64'],
    [['--seed', '-1'], "Option '--seed' argument is ambiguous"],
    [['--scenario', 'flood'], '--scenario is "flood"; allowed: mixed, database, destinations, processes, calm'],
  ])('refuses %s', (args, message) => {
    expect(() => readChaosOptions(args, 1)).toThrow(message)
  })
})
