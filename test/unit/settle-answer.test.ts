import { describe, expect, it } from 'vitest'
import { readSettleAnswer, type SettleAnswer, type SettledEvent } from '../../src/core/settlement.js'

const answer = (changes: Partial<SettleAnswer>): SettleAnswer => ({
  published: 0,
  retried: 0,
  held: 0,
  failed: 0,
  freed: 0,
  givenBack: 0,
  kept: 0,
  settledBefore: 0,
  ...changes,
})
const events = (count: number): SettledEvent[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `e${index}`,
    attempts: 0,
    outcome: { kind: 'published', destination: 'a', messageId: 'm' } as const,
  }))

describe('the answer to a settlement', () => {
  it.each([
    ['changed everything and gave all shards back', 3, answer({ published: 3, givenBack: 2 }), 2, 0, 'recorded'],
    [
      'changed everything and kept shards that are still in use',
      3,
      answer({ published: 3, givenBack: 1, kept: 1 }),
      2,
      0,
      'recorded',
    ],
    ['changed nothing, while all shards are still leased: an earlier sending did it', 3, answer({ kept: 2 }), 2, 0, 'recorded'],
    [
      'changed nothing, and the shards were given back by this very token: so did an earlier sending',
      3,
      answer({ settledBefore: 2 }),
      2,
      0,
      'recorded',
    ],
    ['the same after another settlement of the token had given shards back', 3, answer({ settledBefore: 3 }), 2, 1, 'recorded'],
    ['had nothing to change, and its earlier sending gave the shards back', 0, answer({ settledBefore: 2 }), 2, 0, 'recorded'],
    ['changed nothing, and nobody with this token has the shards', 3, answer({}), 2, 0, 'lease-lost'],
    ['changed some: one of two shards is somebody else’s', 3, answer({ published: 2, givenBack: 1 }), 2, 0, 'lease-lost'],
    [
      'changed all that was asked, yet a shard with unsent events is somebody else’s',
      3,
      answer({ published: 3, givenBack: 1 }),
      2,
      0,
      'lease-lost',
    ],
    [
      'found more shards than the relay knew of, after a repeated claim',
      1,
      answer({ published: 1, givenBack: 5 }),
      2,
      0,
      'recorded',
    ],
  ] as const)('that %s', (_, asked, given, own, givenBackBefore, kind) => {
    expect(readSettleAnswer(events(asked), given, own, givenBackBefore).kind).toBe(kind)
  })

  it('says how many shards were lost', () => {
    expect(readSettleAnswer(events(3), answer({ published: 1, givenBack: 1 }), 4, 0)).toEqual({ kind: 'lease-lost', shards: 3 })
  })
})
