import { ConfigurationError, SqlError, type SqlFailureKind } from '../core/errors.js'
import { failureMessage, type Target } from './failure-message.js'
import { kindOfSqlState, sqlStateIn } from './sql-state.js'

/**
 * How fast a call may be sent again: `resuming` in steps of 1-2 s, `backoff` exponentially from 100 ms, `briefly` a few times
 * only, because it seldom heals (a secret being rotated), `never`.
 */
export type Pace = 'resuming' | 'backoff' | 'briefly' | 'never'

export interface Failure {
  readonly error: SqlError
  readonly pace: Pace
}

type Verdict = readonly [SqlFailureKind, Pace]

const byName: Readonly<Record<string, Verdict>> = {
  DatabaseResumingException: ['not-executed', 'resuming'],
  ThrottlingException: ['not-executed', 'backoff'],
  Throttling: ['not-executed', 'backoff'],
  ThrottledException: ['not-executed', 'backoff'],
  TooManyRequestsException: ['not-executed', 'backoff'],
  RequestLimitExceeded: ['not-executed', 'backoff'],
  // no 5xx says how far the statement had come: a failover can end it after its commit
  DatabaseUnavailableException: ['ambiguous', 'backoff'],
  InternalServerErrorException: ['ambiguous', 'backoff'],
  ServiceUnavailableError: ['ambiguous', 'backoff'],
  // the statement is cancelled after 45 s, but a cancel that comes too late finds it committed
  StatementTimeoutException: ['ambiguous', 'backoff'],
  InvalidResourceStateException: ['not-executed', 'briefly'],
  SecretsErrorException: ['not-executed', 'briefly'],
  InvalidSecretException: ['permanent', 'briefly'],
  ExpiredTokenException: ['permanent', 'briefly'],
  ExpiredToken: ['permanent', 'briefly'],
  TransactionNotFoundException: ['transaction-lost', 'never'],
  AccessDeniedException: ['permanent', 'never'],
  ForbiddenException: ['permanent', 'never'],
  HttpEndpointNotEnabledException: ['permanent', 'never'],
  DatabaseNotFoundException: ['permanent', 'never'],
  CredentialsProviderError: ['permanent', 'never'],
}

/** Names whose meaning is only in their text, most telling first. */
const speaking = new Set(['DatabaseErrorException', 'BadRequestException', 'UnsupportedResultException', 'ValidationException'])
const byText: readonly (readonly [RegExp, Verdict])[] = [
  [
    /response size limit|exceeded size limit|packet for query is too large|size was too large|response size/i,
    ['oversize', 'never'],
  ],
  [/transaction \S+ is not found/i, ['transaction-lost', 'never']],
  // an earlier call of this transaction, whose reply was lost, is not finished: this one never began
  [/transaction is still running a query/i, ['not-executed', 'backoff']],
  [/communications link failure/i, ['ambiguous', 'backoff']],
]

/** The request never left this machine, or met nobody. */
const unreachable = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** A handshake that failed, or a call that was never made: nothing of it was sent, and waiting does not heal it. */
const neverTalked = /CERT|UNABLE_TO_|HOSTNAME_MISMATCH|^ERR_INVALID_|^ERR_SSL_WRONG_VERSION_NUMBER$/

/** Says what is known about a call that threw, by the error's name: the SDK's classes do not cover what the service sends. */
export function classifyFailure(thrown: unknown, target: Target): Failure {
  if (thrown instanceof SqlError) return { error: thrown, pace: 'never' }
  if (thrown instanceof ConfigurationError) throw thrown
  const seen = look(thrown)
  const sqlState = sqlStateIn(seen.message)
  const [kind, pace] = judge(seen)
  const error = new SqlError(kind, failureMessage(seen.name, sqlState, seen.message, target), {
    errorName: seen.name,
    sqlState,
    // what the service sent may quote rows: it is kept out of everything a logger could print
    cause: seen.status === undefined ? thrown : undefined,
  })
  return { error, pace }
}

interface Seen {
  readonly name: string
  readonly message: string
  readonly status: number | undefined
  readonly code: string | undefined
  readonly connecting: boolean
}

function look(thrown: unknown): Seen {
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as {
    readonly name?: unknown
    readonly message?: unknown
    readonly code?: unknown
    readonly syscall?: unknown
    readonly $metadata?: { readonly httpStatusCode?: number }
  }
  const message = typeof error.message === 'string' ? error.message : String(thrown)
  const code = typeof error.code === 'string' ? error.code : undefined
  const status = error.$metadata?.httpStatusCode
  const name = typeof error.name === 'string' ? error.name : 'Error'
  // an answer that could not be read: its text is a piece of the answer
  if (name === 'SyntaxError' && status !== undefined) {
    return { name: 'UnreadableAnswer', message: `HTTP ${status} without a readable body`, status, code, connecting: false }
  }
  if (name === 'AbortError') return { name, message: 'no answer before the deadline', status, code, connecting: false }
  const connecting = error.syscall === 'connect' || /did not establish a connection/.test(message)
  return { name: name === 'Error' && code !== undefined ? code : name, message, status, code, connecting }
}

function judge(seen: Seen): Verdict {
  if (speaking.has(seen.name)) {
    const told = byText.find(([pattern]) => pattern.test(seen.message))
    if (told !== undefined) return told[1]
    const kind = kindOfSqlState(seen.message) ?? 'permanent'
    // a wrong password may be a secret that is just being rotated
    if (kind === 'permanent') return [kind, sqlStateIn(seen.message) === '28P01' ? 'briefly' : 'never']
    return [kind, kind === 'transaction-lost' ? 'never' : 'backoff']
  }
  const named = byName[seen.name]
  if (named !== undefined) return named

  if (seen.connecting || unreachable.has(seen.code ?? '')) return ['not-executed', 'backoff']
  if (seen.status === 429) return ['not-executed', 'backoff']
  if (seen.status !== undefined && seen.status >= 400 && seen.status < 500 && seen.status !== 408) return ['permanent', 'never']
  // any other answer, and any failure of the connection once it stood
  const talked =
    seen.status !== undefined || (seen.code !== undefined && !neverTalked.test(seen.code)) || seen.message === 'fetch failed'
  if (talked || seen.name === 'TimeoutError' || seen.name === 'AbortError') return ['ambiguous', 'backoff']
  return ['permanent', 'never']
}
