import { describe, expect, it } from 'vitest'
import { exitCode } from '../../src/cli/exit-code.js'
import { describeFailure } from '../../src/cli/failure.js'
import { ConfigurationError, SchemaError, SqlError } from '../../src/core/errors.js'

const sqlError = (sqlState: string | undefined, message: string): SqlError =>
  new SqlError('permanent', message, { errorName: 'DatabaseErrorException', sqlState })

describe('a failure', () => {
  it('is a usage error when a setting is wrong', () => {
    expect(describeFailure(new ConfigurationError('OUTBOX_DATABASE', 'OUTBOX_DATABASE is not set.'))).toEqual({
      line: 'OUTBOX_DATABASE is not set',
      code: exitCode.usage,
    })
  })

  it('is a schema error when the schema is refused, and when there is none', () => {
    expect(describeFailure(new SchemaError('version 2 is too new')).code).toBe(exitCode.schema)
    for (const state of ['42P01', '42883', '3F000']) {
      const failure = describeFailure(sqlError(state, 'relation "outbox_meta" does not exist'))
      expect(failure.code).toBe(exitCode.schema)
      expect(failure.line).toMatch(/^there is no outbox here, run "outbox migrate": relation/)
    }
  })

  it('is a plain failure otherwise', () => {
    expect(describeFailure(sqlError('42501', 'permission denied'))).toEqual({ line: 'permission denied', code: exitCode.failed })
    expect(describeFailure(sqlError(undefined, 'no such secret')).code).toBe(exitCode.failed)
    expect(describeFailure('thrown text')).toEqual({ line: 'thrown text', code: exitCode.failed })
  })

  it('is one line, whatever the message holds', () => {
    const { line } = describeFailure(new Error('first\n  second\tthird\u001b[2J.'))
    expect(line).toBe('first second third [2J')
  })

  it('says what to do about missing credentials', () => {
    const error = new Error('Could not load credentials from any providers')
    error.name = 'CredentialsProviderError'
    expect(describeFailure(error).line).toMatch(/set AWS_PROFILE/)
  })
})
