import { describe, expect, test } from 'vitest'
import { SqlError } from '../../src/core/errors.js'
import { classifyFailure } from '../../src/data-api/classify.js'

const target = { resourceArn: 'arn:cluster', secretArn: 'arn:secret', database: 'orders' }

const thrown = (name: string, message = '', status: number | null = 400, more: object = {}): Error =>
  Object.assign(new Error(message), { name, ...(status === null ? {} : { $metadata: { httpStatusCode: status } }) }, more)

const judged = (error: unknown): string => {
  const failure = classifyFailure(error, target)
  return `${failure.error.kind}, ${failure.pace}`
}

describe('A failure is classified by the name of the service error', () => {
  test.each([
    ['DatabaseResumingException', 400, 'not-executed, resuming'],
    ['DatabaseUnavailableException', 504, 'ambiguous, backoff'],
    ['InternalServerErrorException', 500, 'ambiguous, backoff'],
    ['ServiceUnavailableError', 503, 'ambiguous, backoff'],
    ['ThrottlingException', 400, 'not-executed, backoff'],
    ['ThrottlingException', 429, 'not-executed, backoff'],
    ['StatementTimeoutException', 400, 'ambiguous, backoff'],
    ['ValidationException', 400, 'permanent, never'],
    ['TransactionNotFoundException', 404, 'transaction-lost, never'],
    ['InvalidResourceStateException', 400, 'not-executed, briefly'],
    ['SecretsErrorException', 400, 'not-executed, briefly'],
    ['InvalidSecretException', 400, 'permanent, briefly'],
    ['AccessDeniedException', 403, 'permanent, never'],
    ['ForbiddenException', 403, 'permanent, never'],
    ['HttpEndpointNotEnabledException', 400, 'permanent, never'],
    ['DatabaseNotFoundException', 404, 'permanent, never'],
    ['NotFoundException', 404, 'permanent, never'],
    ['UnsupportedResultException', 400, 'permanent, never'],
    ['DatabaseErrorException', 400, 'permanent, never'],
    ['SomethingNewException', 400, 'permanent, never'],
    ['SomethingNewException', 418, 'permanent, never'],
    ['SomethingNewException', 408, 'ambiguous, backoff'],
    ['SomethingNewException', 500, 'ambiguous, backoff'],
    ['SomethingNewException', 429, 'not-executed, backoff'],
    ['SyntaxError', 502, 'ambiguous, backoff'],
    ['SyntaxError', 200, 'ambiguous, backoff'],
  ])('%s (%i) is %s', (name, status, expected) => {
    expect(judged(thrown(name, '', status))).toBe(expected)
  })
})

describe('A failure of the network says whether anything was sent', () => {
  test.each([
    [
      'a refused connection',
      thrown('Error', 'connect ECONNREFUSED', null, { code: 'ECONNREFUSED', syscall: 'connect' }),
      'not-executed, backoff',
    ],
    ['an unknown host', thrown('Error', 'getaddrinfo ENOTFOUND', null, { code: 'ENOTFOUND' }), 'not-executed, backoff'],
    [
      'a connection that timed out in the making',
      thrown('TimeoutError', 'connect ETIMEDOUT', null, { code: 'ETIMEDOUT', syscall: 'connect' }),
      'not-executed, backoff',
    ],
    [
      "the client's own connection timeout",
      thrown('TimeoutError', 'the request socket did not establish a connection with the server within 3000 ms', null),
      'not-executed, backoff',
    ],
    ['a reset', thrown('TimeoutError', 'socket hang up', null, { code: 'ECONNRESET' }), 'ambiguous, backoff'],
    ['a broken pipe', thrown('TimeoutError', 'write EPIPE', null, { code: 'EPIPE' }), 'ambiguous, backoff'],
    ['a request timeout', thrown('TimeoutError', 'exceeded requestTimeout', null, { code: 'ETIMEDOUT' }), 'ambiguous, backoff'],
    ['a call cut at its deadline', thrown('AbortError', 'Request aborted', null), 'ambiguous, backoff'],
    [
      'a connection that breaks in its encryption, after the call was sent',
      thrown('Error', 'bad record mac', null, { code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' }),
      'ambiguous, backoff',
    ],
    ['a broken connection of the fetch handler', thrown('TypeError', 'fetch failed', null), 'ambiguous, backoff'],
    [
      'a port that speaks no TLS',
      thrown('Error', 'wrong version number', null, { code: 'ERR_SSL_WRONG_VERSION_NUMBER' }),
      'permanent, never',
    ],
    ['an answer cut in the middle', thrown('Error', 'aborted', 200, { code: 'ECONNRESET' }), 'ambiguous, backoff'],
    [
      'an untrusted certificate',
      thrown('Error', 'self-signed certificate', null, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
      'permanent, never',
    ],
    ['missing credentials', thrown('CredentialsProviderError', 'Could not load credentials', null), 'permanent, never'],
    ['a missing region', thrown('Error', 'Region is missing', null), 'permanent, never'],
    ['something that is no error', 'text', 'permanent, never'],
  ])('%s', (_what, error, expected) => {
    expect(judged(error)).toBe(expected)
  })
})

describe('An SQLSTATE in the text of a database error decides', () => {
  test.each([
    ['40001', 'rolled-back, backoff'],
    ['40P01', 'rolled-back, backoff'],
    ['55P03', 'rolled-back, backoff'],
    ['57014', 'rolled-back, backoff'],
    ['53100', 'rolled-back, backoff'],
    ['53300', 'not-executed, backoff'],
    ['57P01', 'ambiguous, backoff'],
    ['57P02', 'ambiguous, backoff'],
    ['57P03', 'not-executed, backoff'],
    ['40003', 'ambiguous, backoff'],
    ['08006', 'ambiguous, backoff'],
    ['08001', 'not-executed, backoff'],
    ['25P02', 'transaction-lost, never'],
    ['25P03', 'transaction-lost, never'],
    ['28P01', 'permanent, briefly'],
    ['23505', 'permanent, never'],
    ['23514', 'permanent, never'],
    ['22P02', 'permanent, never'],
    ['42P01', 'permanent, never'],
    ['42501', 'permanent, never'],
    ['42601', 'permanent, never'],
  ])('%s is %s', (state, expected) => {
    const failure = classifyFailure(thrown('DatabaseErrorException', `ERROR: said so; SQLState: ${state}`), target)
    expect(`${failure.error.kind}, ${failure.pace}`).toBe(expected)
    expect(failure.error.sqlState).toBe(state)
  })

  test('MySQL tells a lock wait timeout by its own number', () => {
    expect(judged(thrown('DatabaseErrorException', 'Lock wait timeout exceeded; Error code: 1205; SQLState: HY000'))).toBe(
      'rolled-back, backoff',
    )
    expect(judged(thrown('DatabaseErrorException', 'Deadlock found; Error code: 1213; SQLState: 40001'))).toBe(
      'rolled-back, backoff',
    )
    expect(judged(thrown('DatabaseErrorException', 'Something; Error code: 1105; SQLState: HY000'))).toBe('permanent, never')
  })
})

describe('Some failures are known by their text alone', () => {
  test.each([
    ['DatabaseErrorException', 'Database returned more than the allowed response size limit', 'oversize, never'],
    ['BadRequestException', 'Database response exceeded size limit', 'oversize, never'],
    ['UnsupportedResultException', 'The size was too large', 'oversize, never'],
    ['DatabaseErrorException', 'Packet for query is too large', 'oversize, never'],
    ['UnsupportedResultException', 'The result contains the unsupported data type MONEY', 'permanent, never'],
    ['DatabaseErrorException', 'Transaction AbC is not found. Transaction may be expired.', 'transaction-lost, never'],
    ['BadRequestException', 'Transaction AbC is not found', 'transaction-lost, never'],
    ['DatabaseErrorException', 'Transaction is still running a query.', 'not-executed, backoff'],
    ['BadRequestException', 'Communications link failure', 'ambiguous, backoff'],
    ['ValidationException', "Multistatements aren't supported.", 'permanent, never'],
  ])('%s: %s', (name, message, expected) => {
    expect(judged(thrown(name, message))).toBe(expected)
  })
})

describe('A message is one line that says what to do', () => {
  const messageOf = (error: unknown): string => classifyFailure(error, target).error.message

  test('a missing table names the database to migrate', () => {
    expect(
      messageOf(thrown('DatabaseErrorException', 'ERROR: relation "outbox" does not exist\n  Position: 15; SQLState: 42P01')),
    ).toBe(
      'DatabaseErrorException 42P01: relation "outbox" does not exist; if it is the outbox\'s or the inbox\'s own, migrate database "orders" first, and check the schema setting',
    )
  })

  test.each([
    ['HttpEndpointNotEnabledException', '', 'arn:cluster'],
    ['DatabaseNotFoundException', '', 'arn:cluster'],
    ['SecretsErrorException', '', 'arn:secret'],
    ['AccessDeniedException', '', 'secretsmanager:GetSecretValue on arn:secret'],
    ['DatabaseErrorException', 'ERROR: permission denied for table outbox; SQLState: 42501', 'grant it the outbox role'],
    ['DatabaseErrorException', 'FATAL: database "x" does not exist; SQLState: 3D000', 'database name "orders"'],
    ['DatabaseErrorException', 'FATAL: password authentication failed; SQLState: 28P01', 'arn:secret'],
    [
      'DatabaseErrorException',
      'ERROR: column "id" is of type uuid but expression is of type text; SQLState: 42804',
      'CAST(:id AS uuid)',
    ],
  ])('%s %s', (name, message, advice) => {
    expect(messageOf(thrown(name, message))).toContain(advice)
    expect(messageOf(thrown(name, message))).not.toMatch(/[\r\n]|undefined/)
  })

  test.each([
    [
      'a row in Detail',
      'ERROR: new row violates check constraint "c"\n  Detail: Failing row contains (1, s3cret).; SQLState: 23514',
    ],
    [
      'a key in Detail on the same line',
      'ERROR: duplicate key violates "u"; Detail: Key (k)=(s3cret) already exists.; SQLState: 23505',
    ],
    ['a value in the message itself', 'ERROR: invalid input syntax for type uuid: "s3cret"; SQLState: 22P02'],
    ['a context line', 'ERROR: invalid input syntax for type json\n  Where: JSON data, line 1: s3cret; SQLState: 22P02'],
  ])('%s is left out, of the cause too', (_what, message) => {
    const { error } = classifyFailure(thrown('DatabaseErrorException', message), target)
    expect(error.message).toMatch(/^DatabaseErrorException [0-9P]{5}: (new row|duplicate key|invalid input)/)
    expect(error.message).not.toContain('s3cret')
    expect(error.cause).toBeUndefined()
  })

  test('an answer that cannot be read is not quoted', () => {
    expect(messageOf(thrown('SyntaxError', `Unexpected token '<', "s3cret" is not valid JSON`, 502))).toBe(
      'UnreadableAnswer: HTTP 502 without a readable body',
    )
  })

  test('a failure of the network keeps its cause', () => {
    const cause = thrown('TimeoutError', 'socket hang up', null, { code: 'ECONNRESET' })
    const { error } = classifyFailure(cause, target)
    expect(error).toBeInstanceOf(SqlError)
    expect(error.cause).toBe(cause)
    expect(error.message).toBe('TimeoutError: socket hang up')
  })
})
