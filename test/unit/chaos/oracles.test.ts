import { describe, expect, it } from 'vitest'
import type { EventAnswer } from '../../../chaos/answers.js'
import type { CommittedEvent, Evidence, OperatorAct, SettledEvent } from '../../../chaos/evidence.js'
import { judge } from '../../../chaos/oracles.js'
import { scenarios } from '../../../chaos/scenarios.js'

const committed = (id: string, nr: number, options: Partial<CommittedEvent> = {}): CommittedEvent => ({
  id,
  key: 'k',
  committedUs: nr * 1000,
  nr,
  scheduled: false,
  skips: false,
  ...options,
})
const settled = (id: string, options: Partial<SettledEvent> = {}): SettledEvent => ({
  id,
  atMs: 1000,
  lane: 1,
  charged: 0,
  attempts: 0,
  starts: 0,
  code: 'InternalError',
  unsent: false,
  ...options,
})
const answer = (eventId: string, options: Partial<EventAnswer> = {}): EventAnswer => ({
  eventId,
  atMs: 900,
  kind: 'refused',
  code: 'InternalError',
  besideAccepted: true,
  ...options,
})

/**
 * A good run: a and b of one key, c without; a was charged once before it was accepted, and delivered twice; d failed. A relay died
 * with another refusal of a, and the next one put a aside without sending it.
 */
const good: Evidence = {
  scenario: scenarios.mixed,
  seconds: 60,
  maxAttempts: 4,
  retentionSeconds: 60,
  committed: [committed('a', 1), committed('b', 2), committed('c', 3, { key: null }), committed('d', 4, { key: null })],
  told: { committed: new Set(['a', 'b', 'c', 'd']), rolledBack: new Set(['x']), failed: 0, done: 4 },
  delivered: new Map([
    ['a', { firstSentMs: 2000, messages: 2 }],
    ['b', { firstSentMs: 2000, messages: 1 }],
    ['c', { firstSentMs: 1500, messages: 1 }],
  ]),
  applied: new Map([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ]),
  recorded: new Set(['a', 'b', 'c']),
  failed: new Set(['d']),
  discarded: new Set(),
  released: new Set(),
  acts: [],
  settled: [
    settled('a', { charged: 1, attempts: 1 }),
    settled('d', { lane: 3, charged: 1, attempts: 1, code: 'InvalidMessageContents' }),
    settled('a', { atMs: 1400, lane: 2, attempts: 1, unsent: true }),
  ],
  answers: [answer('a'), answer('a', { atMs: 1300 }), answer('d', { code: 'InvalidMessageContents', besideAccepted: false })],
  left: { ready: 0, waiting: 0, held: 0, blocking: 0, leasedShards: 0, inNoState: 0, inTwoStates: 0 },
  deaths: 2,
  gauges: [{ name: 'FailedEvents', gauge: 1, least: 1, most: 1 }],
  counts: [{ name: 'Published', counted: 3, happened: 3 }],
  faultsInjected: 2,
}
const act = (action: OperatorAct['action'], options: Partial<OperatorAct> = {}): OperatorAct => ({
  action,
  chances: 5,
  events: 0,
  failure: null,
  ...options,
})
const judged = (changes: Partial<Evidence>) => judge({ ...good, ...changes })
const without = <Value>(map: ReadonlyMap<string, Value>, id: string) => new Map([...map].filter(([one]) => one !== id))

describe('the oracles of the chaos rig', () => {
  it('find nothing in a good run, and add it up', () => {
    expect(judge(good)).toEqual({
      violations: [],
      figures: {
        committed: 4,
        published: 3,
        duplicates: 1,
        lost: 0,
        orderViolations: 0,
        stuck: 0,
        charged: 2,
        wronglyCharged: 0,
        failed: 1,
        faultsInjected: 2,
      },
    })
  })

  it.each<[string, Partial<Evidence>, Record<string, number>, RegExp]>([
    ['a run that committed nothing', { committed: [] }, { committed: 0 }, /nothing was committed/],
    [
      'an event that is neither delivered nor failed nor discarded',
      { delivered: without(good.delivered, 'c'), recorded: new Set(['a', 'b']), applied: without(good.applied, 'c') },
      { lost: 1 },
      /lost: event c/,
    ],
    [
      'an event that is recorded as published and was never delivered, though it failed later',
      { recorded: new Set(['a', 'b', 'c', 'd']) },
      { lost: 1 },
      /lost: event d/,
    ],
    [
      'a first delivery before that of an event of its key committed earlier',
      { delivered: new Map([...good.delivered, ['b', { firstSentMs: 1999, messages: 1 }]]) },
      { orderViolations: 1 },
      /order: event b of key k came 1 ms before the earlier a/,
    ],
    [
      'an order that was lost within a transaction',
      {
        committed: [
          committed('a', 2, { committedUs: 1000 }),
          committed('b', 1, { committedUs: 1000 }),
          ...good.committed.slice(2),
        ],
        delivered: new Map([...good.delivered, ['a', { firstSentMs: 1999, messages: 2 }]]),
      },
      { orderViolations: 1 },
      /order: event a of key k/,
    ],
    ...(['ready', 'waiting', 'held', 'blocking', 'leasedShards', 'inNoState', 'inTwoStates'] as const).map(
      (what): [string, Partial<Evidence>, Record<string, number>, RegExp] => [
        `what is left ${what}`,
        { left: { ...good.left, [what]: 3 } },
        { stuck: 3 },
        new RegExp(`stuck: 3 ${what}`),
      ],
    ),
    [
      'an attempt that was charged although the request failed whole',
      { answers: [answer('a', { kind: 'whole', code: null, besideAccepted: false }), good.answers[2]!] },
      { wronglyCharged: 1 },
      /event a was charged 1 for InternalError; its answers say free/,
    ],
    [
      'an attempt that was charged although no neighbour was accepted',
      { answers: [answer('a', { besideAccepted: false }), good.answers[2]!] },
      { wronglyCharged: 1 },
      /event a was charged/,
    ],
    [
      'an attempt that was charged for an answer of an earlier settlement',
      { settled: [...good.settled, settled('a', { atMs: 2000, charged: 1, attempts: 2 })] },
      { wronglyCharged: 1, charged: 3 },
      /event a was charged/,
    ],
    [
      'an attempt that was charged for throttling',
      {
        settled: [settled('a', { charged: 1, attempts: 1, code: 'RequestThrottled' }), good.settled[1]!],
        answers: [answer('a', { code: 'RequestThrottled' }), good.answers[2]!],
      },
      { wronglyCharged: 1 },
      /event a was charged/,
    ],
    [
      'an attempt that was not charged although a neighbour was accepted',
      { settled: [settled('a'), good.settled[1]!] },
      { wronglyCharged: 1 },
      /event a was not charged for InternalError; its answers say charged/,
    ],
    [
      'an entry missing beside an accepted one that was not charged',
      {
        settled: [settled('a', { code: 'UnknownEntry' }), good.settled[1]!],
        answers: [answer('a', { kind: 'missing', code: 'UnknownEntry' }), good.answers[2]!],
      },
      { wronglyCharged: 1 },
      /event a was not charged/,
    ],
    [
      'two attempts charged at once',
      { settled: [settled('a', { charged: 2, attempts: 2 }), good.settled[1]!] },
      { wronglyCharged: 1 },
      /event a was charged 2/,
    ],
    [
      'an event put aside that was charged',
      { settled: [...good.settled, settled('c', { lane: 2, charged: 1, code: 'AccessDenied' })] },
      { wronglyCharged: 1 },
      /event c was charged/,
    ],
    [
      'an event that failed for crashes where none were made',
      {
        scenario: scenarios.database,
        deaths: 8,
        settled: [...good.settled, settled('d', { lane: 3, starts: 3, code: 'CrashedRelays' })],
      },
      {},
      /failed without a reason: event d, CrashedRelays/,
    ],
    [
      'a run in which nothing was charged',
      { settled: [], answers: [], failed: new Set(), discarded: new Set(['d']), faultsInjected: 500 },
      { faultsInjected: 500 },
      /no attempt was charged/,
    ],
    [
      'a delivery of what was rolled back',
      {
        delivered: new Map([...good.delivered, ['x', { firstSentMs: 1, messages: 1 }]]),
        applied: new Map([...good.applied, ['x', 1]]),
      },
      {},
      /rolled back, but seen: event x/,
    ],
    ['a receipt of what was rolled back', { recorded: new Set([...good.recorded, 'x']) }, {}, /rolled back, but seen: event x/],
    [
      'a commit that the writer was told of and that is not there',
      { told: { ...good.told, committed: new Set(['a', 'y']) } },
      {},
      /told that event y is committed; it is not/,
    ],
    [
      'a commit that the writer was told did not happen',
      { told: { ...good.told, rolledBack: new Set(['a']) } },
      {},
      /told that event a is not committed; it is/,
    ],
    ['an effect that happened twice', { applied: new Map([...good.applied, ['a', 2]]) }, {}, /event a took effect 2 times/],
    ['an effect that did not happen', { applied: without(good.applied, 'a') }, {}, /event a took effect 0 times/],
    [
      'an effect without a delivery',
      { applied: new Map([...good.applied, ['d', 1]]) },
      {},
      /event d took effect without a delivery/,
    ],
    [
      'an event that gave up too early',
      { settled: [good.settled[0]!, settled('d', { lane: 3, charged: 1, attempts: 3 })], answers: [answer('a'), answer('d')] },
      {},
      /failed without a reason: event d, InternalError, 3 attempts/,
    ],
    [
      'an event that failed for a crash where nothing crashed',
      { settled: [good.settled[0]!, settled('d', { lane: 3, starts: 3, code: 'Crashed' })] },
      {},
      /failed without a reason: event d, Crashed, 0 attempts, 3 starts/,
    ],
    [
      'an event that failed, and nobody settled it so',
      { settled: [good.settled[0]!] },
      {},
      /failed, and nobody failed it: event d/,
    ],
    [
      'a gauge that differs from the tables',
      { gauges: [{ name: 'FailedEvents', gauge: 2, least: 1, most: 1 }] },
      {},
      /gauge FailedEvents is 2, the tables say 1/,
    ],
    [
      'a metric above what happened',
      { counts: [{ name: 'Published', counted: 4, happened: 3 }] },
      {},
      /metric Published adds up to 4, but it happened 3 times/,
    ],
    [
      'an act of an operator that failed for no reason of the database',
      { acts: [act('release', { events: null, failure: 'SqlError: syntax error' })] },
      {},
      /operator: release failed: SqlError: syntax error/,
    ],
    ...(['redrive', 'discard', 'release', 'replay'] as const).map(
      (action): [string, Partial<Evidence>, Record<string, number>, RegExp] => [
        `acts of kind ${action} that change nothing, or fail, though they could`,
        { acts: [act(action), act(action, { events: null }), act(action)] },
        {},
        new RegExp(`operator: 3 acts "${action}" changed nothing`),
      ],
    ),
    [
      'a cleanup that deletes nothing',
      { seconds: 120, counts: [{ name: 'EventsDeleted', counted: 0, happened: 0 }] },
      {},
      /cleanup deleted nothing in 120 s/,
    ],
  ])('see %s', (_, changes, figures, violation) => {
    const verdict = judged(changes)
    expect(verdict.violations.filter((line) => violation.test(line))).toHaveLength(1)
    expect(verdict.figures).toMatchObject(figures)
  })

  it.each<[string, Partial<Evidence>]>([
    [
      'of a scheduled event',
      { committed: [committed('a', 1), committed('b', 2, { scheduled: true }), ...good.committed.slice(2)] },
    ],
    ['of an event without a key', { committed: good.committed.map((one) => ({ ...one, key: null })) }],
    ['after an operator released the earlier one', { released: new Set(['a']) }],
    [
      'after one failed whose route lets its key go on',
      {
        committed: [committed('a', 1, { skips: true }), ...good.committed.slice(1)],
        settled: [...good.settled, settled('a', { atMs: 1500, lane: 3, charged: 1, attempts: 4 })],
        answers: [...good.answers, answer('a', { atMs: 1450 })],
      },
    ],
  ])('hold nobody to an order %s', (_, changes) => {
    const early = new Map([...good.delivered, ['b', { firstSentMs: 1000, messages: 1 }]])
    expect(judged({ ...changes, delivered: early }).violations).toEqual([])
  })

  it('take no side when it is not known which of two answers was settled', () => {
    const answers = [...good.answers, answer('a', { atMs: 950, besideAccepted: false })]
    expect(judged({ answers }).figures.wronglyCharged).toBe(0)
    expect(judged({ answers, settled: [settled('a'), good.settled[1]!] }).figures.wronglyCharged).toBe(0)
  })

  it.each<[string, Partial<Evidence>]>([
    ['they are few', { acts: [act('replay'), act('replay'), act('redrive')] }],
    ['there was nothing to change', { acts: [act('replay'), act('replay'), act('replay', { chances: 0 })] }],
    ['one of them changed something', { acts: [act('replay'), act('replay'), act('replay', { events: 1 })] }],
    ['cleanup deleted something', { seconds: 120, counts: [{ name: 'EventsDeleted', counted: 0, happened: 1 }] }],
    ['nothing is past retention', { seconds: 119, counts: [{ name: 'EventsDeleted', counted: 0, happened: 0 }] }],
  ])('ask nothing of operators and cleanup when %s', (_, changes) => {
    expect(judged(changes).violations).toEqual([])
  })

  it.each<[string, Partial<SettledEvent>, Partial<Evidence>]>([
    ['it can never be sent', { code: 'TooLarge' }, {}],
    [
      'it was refused for itself',
      { code: 'MalformedDetail', charged: 1, attempts: 1 },
      { answers: [answer('a'), answer('d', { code: 'MalformedDetail' })] },
    ],
    ['its attempts are used up', { charged: 1, attempts: 4 }, { answers: [answer('a'), answer('d')] }],
    ['it crashed three relays', { starts: 3, code: 'Crashed' }, { deaths: 3 }],
  ])('accept that an event failed because %s', (_, failure, changes) => {
    expect(judged({ settled: [good.settled[0]!, settled('d', { lane: 3, ...failure })], ...changes }).violations).toEqual([])
  })
})
