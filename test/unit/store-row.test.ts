import { describe, expect, test } from 'vitest'
import { bigint, boolean, integer, integerOrNull, single, text, textOrNull } from '../../src/store/postgres/row.js'

describe('a column of an answer', () => {
  const row = { id: 'a', seq: 2n ** 60n, shard: 3, reclaimed: false, destination: null }

  test('is read as what it is', () => {
    expect([text(row, 'id'), bigint(row, 'seq'), bigint(row, 'shard'), integer(row, 'shard'), boolean(row, 'reclaimed')]).toEqual(
      ['a', 2n ** 60n, 3n, 3, false],
    )
    expect([textOrNull(row, 'destination'), integerOrNull(row, 'destination')]).toEqual([null, null])
  })

  test.each([
    [() => text(row, 'shard'), 'column "shard" of the answer is number, not text'],
    [() => integer(row, 'id'), 'column "id" of the answer is string, not an integer'],
    [() => bigint(row, 'destination'), 'column "destination" of the answer is null, not an integer'],
    [() => boolean(row, 'gone'), 'column "gone" of the answer is missing, not a boolean'],
    [() => single([]), 'the answer has 0 rows, not 1'],
    [() => single([row, row]), 'the answer has 2 rows, not 1'],
  ])('that is something else fails for good, and says which one', (read, message) => {
    expect(read).toThrow(expect.objectContaining({ message, kind: 'permanent', errorName: 'UnexpectedAnswer' }))
  })
})
