import { describe, expect, test } from 'vitest'
import { schemaVersion } from '../../src/store/check-schema.js'
import { readFunctions, readInbox, readMigrations } from '../../src/store/postgres/schema-files.js'
import { splitStatements } from '../../src/store/postgres/split-statements.js'

const files = [...readMigrations(), ...readFunctions(), readInbox()]

describe('the schema files', () => {
  test('are numbered from 1 without a gap, up to the version that the relay asks for', () => {
    const versions = readMigrations().map(({ version }) => version)
    expect(versions).toEqual(versions.map((_, index) => index + 1))
    expect(versions).toHaveLength(schemaVersion)
  })

  test('hold one function each, named like its file, with its rights beside it', () => {
    for (const { name, statements } of readFunctions()) {
      const own = /^functions\/(outbox_\w+)\.sql$/.exec(name)?.[1]
      const [create, revoke, ...grants] = statements
      expect(create).toMatch(new RegExp(`(^|\\n)CREATE OR REPLACE FUNCTION ${own ?? '?'}\\(`))
      expect(revoke).toBe(`REVOKE ALL ON FUNCTION ${own ?? '?'} FROM PUBLIC`)
      for (const grant of grants) expect(grant).toMatch(new RegExp(`^GRANT EXECUTE ON FUNCTION ${own ?? '?'} TO outbox_`))
    }
  })

  test('run with the rights of the owner only where the path is their own', () => {
    for (const { statements } of readFunctions().filter(({ statements: [create] }) => create?.includes('SECURITY DEFINER'))) {
      expect(statements[0]).toContain('SET search_path FROM CURRENT')
    }
  })

  test('build no index concurrently: one that is broken off would stay behind, invalid, and be written all the same', () => {
    for (const statement of files.flatMap(({ statements }) => statements)) expect(statement).not.toMatch(/\bCONCURRENTLY\b/i)
  })

  test('hold nothing that the Data API could take for a parameter, and no statement beyond 65,536 characters', () => {
    for (const statement of files.flatMap(({ statements }) => statements)) {
      expect(statement).not.toMatch(/:\w/)
      expect(statement.length).toBeLessThan(65_536)
    }
  })
})

describe('statements are split', () => {
  test('at semicolons, and each keeps its comments', () => {
    expect(splitStatements('-- first; really\nSELECT 1;\n\n SELECT 2 ;-- end;\n')).toEqual([
      '-- first; really\nSELECT 1',
      'SELECT 2',
    ])
  })

  test.each([
    ['a string', `SELECT 'a;''b;'`],
    ['a quoted name', `SELECT 1 AS "a;""b;"`],
    ['a body', `DO $$ BEGIN PERFORM 1; END $$`],
    ['a tagged body with another one in it', `DO $a$ SELECT $$;$$; $b$ ;$a$`],
    ['a comment', `SELECT 1 /* a; b */ + 2 -- c; d`],
    ['a string with a comment sign', `SELECT '--;', 1 - 2 / 3`],
    ['a body with an apostrophe in its comment', `DO $$ -- it's; done\n; $$`],
  ])('never inside %s', (_, sql) => {
    expect(splitStatements(`${sql}\n;${sql}\n;`)).toEqual([sql, sql])
  })

  test('and together they are the whole text', () => {
    const bare = (text: string) => text.replaceAll(/[;\s]/g, '')
    for (const sql of ['SELECT $1; SELECT a / b - c;', `SELECT 'x'; -- y\nSELECT "z"`]) {
      expect(bare(splitStatements(sql).join(';'))).toBe(bare(sql))
    }
    expect(splitStatements(' ;; -- nothing\n/* at all */;')).toEqual([])
  })
})
