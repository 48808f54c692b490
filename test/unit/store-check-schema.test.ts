import { describe, expect, test } from 'vitest'
import { SqlError } from '../../src/core/errors.js'
import { checkSchema, readSchemaCheck, schemaVersion } from '../../src/store/check-schema.js'

const expectation = { relayVersion: '0.10.2', installation: 'orders', schema: 'public' }
const meta = { schemaVersion, minRelayVersion: '0.10.0', installation: 'orders' }
const reason = (check: ReturnType<typeof checkSchema>) => (check.ok ? null : check.reason)

describe('a relay runs on', () => {
  test.each([
    ['its own schema', meta],
    ['an outbox that nobody serves yet', { ...meta, installation: null }],
    ['a later schema that admits it', { ...meta, schemaVersion: schemaVersion + 7 }],
    ['a schema that asks for exactly this release', { ...meta, minRelayVersion: '0.10.2' }],
    ['a schema that asks for a release with a smaller number, however it sorts as text', { ...meta, minRelayVersion: '0.9.11' }],
  ])('%s', (_, found) => {
    expect(checkSchema(found, expectation)).toEqual({ ok: true })
  })

  test('the schema of the release that it leads up to', () => {
    expect(checkSchema({ ...meta, minRelayVersion: '0.10.2' }, { ...expectation, relayVersion: '0.10.2-dev' })).toEqual({
      ok: true,
    })
  })
})

describe('a relay refuses, in one line that says what to do,', () => {
  test.each([
    ['no outbox', null, 'schema "public" has no outbox: run the migration (aurora-outbox-relay migrate)'],
    [
      'an outbox that is too new',
      { ...meta, minRelayVersion: '0.10.3' },
      'the outbox in schema "public" is too new: it needs relay 0.10.3 or later, this is 0.10.2; deploy the newer release',
    ],
    [
      'an outbox that is too new by its first number',
      { ...meta, minRelayVersion: '1.0.0' },
      'the outbox in schema "public" is too new: it needs relay 1.0.0 or later, this is 0.10.2; deploy the newer release',
    ],
    [
      'an outbox that was not migrated',
      { ...meta, schemaVersion: 2 },
      `the outbox in schema "public" has schema version 2, this release needs ${schemaVersion}: run the migration (aurora-outbox-relay migrate)`,
    ],
    [
      'the outbox of another installation, naming both',
      { ...meta, installation: 'billing' },
      'the outbox in schema "public" is served by installation "billing", so "orders" must not deliver from it',
    ],
  ])('%s', (_, found, line) => {
    expect(reason(checkSchema(found, expectation))).toBe(line)
  })

  const failing = (sqlState: string | undefined) => ({
    meta: () => Promise.reject(new SqlError('permanent', 'no', { errorName: 'DatabaseErrorException', sqlState })),
  })

  test.each(['42P01', '3F000'])('a table that is not there (%s)', async (sqlState) => {
    expect(await readSchemaCheck(failing(sqlState), expectation)).toEqual(checkSchema(null, expectation))
  })

  test('an outbox that it may not read', async () => {
    expect(reason(await readSchemaCheck(failing('42501'), expectation))).toMatch(/^the database user may not read the outbox/)
  })

  test.each(['28P01', undefined])('but any other failure is thrown (%s)', async (sqlState) => {
    await expect(readSchemaCheck(failing(sqlState), expectation)).rejects.toThrow(SqlError)
  })
})
