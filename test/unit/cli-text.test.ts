import { describe, expect, it } from 'vitest'
import { ageInWords, countOf, fieldLines, momentText, printable, shortened, tableLines } from '../../src/cli/text.js'

describe('text for people', () => {
  it.each([
    [0, 'less than a second'],
    [0.99, 'less than a second'],
    [1, '1 second'],
    [45.9, '45 seconds'],
    [119, '119 seconds'],
    [120, '2 minutes'],
    [7199, '119 minutes'],
    [7200, '2 hours'],
    [172_799, '47 hours'],
    [172_800, '2 days'],
    [31_536_000, '365 days'],
  ])('says %d seconds as "%s"', (seconds, words) => {
    expect(ageInWords(seconds)).toBe(words)
  })

  it('aligns columns, numbers to the right, and leaves no blank at the end of a line', () => {
    const lines = tableLines(
      [
        { title: 'NAME', value: (row: { name: string; count: number }) => row.name },
        { title: 'COUNT', align: 'right', value: (row) => String(row.count) },
        { title: 'NOTE', value: () => '' },
      ],
      [
        { name: 'a', count: 1 },
        { name: 'longer', count: 12_345 },
      ],
    )
    expect(lines).toEqual(['NAME    COUNT  NOTE', 'a           1', 'longer  12345'])
  })

  it('lets no value of a row move the cursor or break a line', () => {
    expect(printable('a\nb\u001b[31mred\u202Eback')).toBe('a b [31mred back')
    expect(fieldLines([['error', 'one\r\ntwo']])).toEqual(['error  one two'])
    expect(tableLines([{ title: 'T', value: (row: string) => row }], ['x\ny'])).toEqual(['T', 'x y'])
  })

  it('shortens by characters, not by halves of one', () => {
    expect(shortened('abcdef', 6)).toBe('abcdef')
    expect(shortened('abcdef', 4)).toBe('abc…')
    expect(shortened('😀😀😀', 2)).toBe('😀…')
  })

  it('writes counts and moments', () => {
    expect([countOf(0, 'event'), countOf(1, 'event'), countOf(2, 'event')]).toEqual(['0 events', '1 event', '2 events'])
    expect(momentText(0)).toBe('1970-01-01 00:00:00Z')
    expect(momentText(1_500)).toBe('1970-01-01 00:00:01.500Z')
  })
})
