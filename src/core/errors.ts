/**
 * The base of every error this package throws on purpose.
 *
 * `code` is stable across releases: match on it, not on the message. The message says what was wrong, the value seen and
 * the value allowed. What is expected in normal operation (a lost lease, a partly failed request, an event without a
 * route) is a return value, never an exception.
 */
export class OutboxError extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** A setting is missing or wrong. `setting` names it as the user wrote it (environment variable, flag or property). */
export class ConfigurationError extends OutboxError {
  readonly setting: string

  constructor(setting: string, message: string, options?: { readonly cause?: unknown }) {
    super('Configuration', message, options)
    this.setting = setting
  }
}

/**
 * What is known about a statement that failed.
 * - `not-executed`: the database never ran it (resuming, throttled, refused); sending it again is always safe.
 * - `rolled-back`: it ran and left nothing (serialization failure, deadlock, lock timeout); sending it again is safe.
 * - `ambiguous`: it may have run (reply lost, timeout, 5xx); find out by token or id before assuming anything.
 * - `oversize`: the answer was larger than the Data API returns (1 MiB, 64 KB a row); it may have run.
 * - `transaction-lost`: the transaction is gone, with everything in it; start the unit of work again.
 * - `permanent`: it will fail again (syntax, rights, constraint, wrong ARN or secret).
 */
export type SqlFailureKind = 'not-executed' | 'rolled-back' | 'ambiguous' | 'oversize' | 'transaction-lost' | 'permanent'

/** A statement failed. Never carries parameter values. */
export class SqlError extends OutboxError {
  readonly kind: SqlFailureKind
  /** The name of the service's error, e.g. `DatabaseResumingException`. */
  readonly errorName: string
  /** Five characters, where the database gave one. */
  readonly sqlState: string | undefined

  constructor(
    kind: SqlFailureKind,
    message: string,
    details: { readonly errorName: string; readonly sqlState?: string | undefined; readonly cause?: unknown },
  ) {
    super('Sql', message, { cause: details.cause })
    this.kind = kind
    this.errorName = details.errorName
    this.sqlState = details.sqlState
  }
}

/**
 * Another transaction holds an ordering key, or has written an idempotency key, of these events, and did not end in time
 * (SQLSTATE 55P03, for an ordering key after 5 s). Nothing was written: run the whole transaction again.
 */
export class KeyBusyError extends SqlError {
  override readonly code = 'KeyBusy'
}

/** The database's schema is missing, altered, or of another version than this release can run on. */
export class SchemaError extends OutboxError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('Schema', message, options)
  }
}

/** The caller gave an event that could never be delivered; nothing was written. */
export class InvalidEventError extends OutboxError {
  /** The field, e.g. `payload` or `headers.traceparent`. */
  readonly field: string

  constructor(field: string, message: string, options?: { readonly cause?: unknown }) {
    super('InvalidEvent', message, options)
    this.field = field
  }
}
