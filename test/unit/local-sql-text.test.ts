import { describe, expect, it } from 'vitest'
import { parseSqlText } from '../../src/local/data-api/sql-text.js'

describe('parameters of a statement', () => {
  it.each([
    ['SELECT :a, :b_2', ['a', 'b_2']],
    ['SELECT :a + :a', ['a', 'a']],
    ['SELECT :a::uuid, x::text', ['a']],
    ['SELECT CAST(:a AS uuid)', ['a']],
    ['SELECT list[1:2], list[:from::int]', ['from']],
    ['SELECT f(name := :a)', ['a']],
    [':a', ['a']],
    ['', []],
  ])('%s has %j', (sql, names) => {
    const { pieces, names: found } = parseSqlText(sql)
    expect(found).toEqual(names)
    expect(pieces.reduce((text, piece, index) => `${text}:${found[index - 1] ?? ''}${piece}`)).toBe(sql)
  })

  it.each([
    `SELECT '12:30'`,
    `SELECT 'it''s :a'`,
    `SELECT E'\\':a'`,
    `SELECT E'\\\\' || 'x:y'`,
    `SELECT e'a''\\':b'`,
    `SELECT U&'\\0041:a'`,
    `SELECT "column :a"`,
    `SELECT 1 -- :a`,
    `SELECT 1 /* :a /* :b */ :c */`,
    `SELECT $$ :a $$`,
    `SELECT $body$ $$ :a $other$ :b $body$`,
    `SELECT $été$ :a $été$`,
    `SELECT payload::json`,
    `SELECT a::b::c`,
    `SELECT '$$', ':a', '$$'`,
  ])('%s has none', (sql) => {
    expect(parseSqlText(sql)).toMatchObject({ names: [], pieces: [sql] })
  })

  it.each([
    [`SELECT type'x' || :a`, ['a']],
    [`SELECT 'a\\' || :a || '\\b'`, ['a']],
    [`SELECT column$1 || $q$ :x $q$ || :a`, ['a']],
    [`SELECT a$$b || :a`, ['a']],
    [`SELECT '/*' || :a -- '`, ['a']],
    [`SELECT 1 -- it's\n, :a`, ['a']],
    [`SELECT 1 /* ' */, :a`, ['a']],
    [`SELECT 1 - -:a`, ['a']],
    [`SELECT 4 / :a * 2`, ['a']],
  ])('%s is not mistaken: %j', (sql, names) => {
    expect(parseSqlText(sql).names).toEqual(names)
  })

  it.each([`SELECT 'open :a`, `SELECT "open`, `SELECT $x$ :a`, `SELECT /* /* :a */`, `SELECT E'\\`])(
    '%s, which never ends, is left to PostgreSQL',
    (sql) => {
      expect(() => parseSqlText(sql)).not.toThrow()
    },
  )

  it('takes a text of the greatest length at once', () => {
    const quoted = `SELECT E'${`\\'`.repeat(16_000)}', '${`''`.repeat(16_000)}', :a`
    expect(parseSqlText(quoted).names).toEqual(['a'])
  })
})

describe('what else matters about a statement', () => {
  it.each([
    ['SELECT $1', '$1'],
    ['SELECT a$1', undefined],
    [`SELECT '$1', "$2", $$ $3 $$ -- $4`, undefined],
  ])("%s has the driver's placeholder %s", (sql, placeholder) => {
    expect(parseSqlText(sql).strayPlaceholder).toBe(placeholder)
  })

  it.each([
    ['SELECT 1;', true],
    ['SELECT 1; -- end\n', true],
    ['SELECT 1', false],
    [`SELECT ';'`, false],
    ['SELECT 1 -- ;', false],
  ])('%s ends with a semicolon: %s', (sql, expected) => {
    expect(parseSqlText(sql).endsWithSemicolon).toBe(expected)
  })
})
