/**
 * Error codes that are never an event's fault, whichever service answers them, for an entry or for a request. All are written
 * as `plainCode` gives them.
 */

/** The operator has to act: rights, credentials, a queue, bus or key that is missing or disabled, an endpoint that is none. */
const CONFIGURATION = new Set([
  // rights
  'AccessDenied',
  'AuthorizationError',
  'UnauthorizedOperation',
  'NotAuthorizedForSource',
  'NotAuthorizedForDetailType',
  'OptInRequired',
  'InvalidSecurity',
  // credentials
  'CredentialsProviderError',
  'TokenProviderError',
  'ExpiredToken',
  'IncompleteSignature',
  'InvalidAccessKeyId',
  'InvalidAccountId',
  'InvalidClientTokenId',
  'InvalidSignature',
  'MissingAuthenticationToken',
  'SignatureDoesNotMatch',
  'UnrecognizedClient',
  // what is addressed
  'InvalidAddress',
  'NonExistentQueue',
  'NotFound',
  'QueueDeletedRecently',
  'QueueDoesNotExist',
  'ResourceNotFound',
  'InvalidAction',
  'UnknownOperation',
  'UnsupportedOperation',
  // the endpoint: no such host, not its certificate
  'ENOTFOUND',
  'ERR_INVALID_URL',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Waiting helps. */
const THROTTLING = new Set([
  'LimitExceeded',
  'OverLimit',
  'RequestLimitExceeded',
  'RequestThrottled',
  'SlowDown',
  'Throttled',
  'Throttling',
  'TooManyRequests',
  'KmsThrottled',
  'KMSThrottling',
])

/** What is addressed does not exist. SQS says so too of a queue of another account that does not let the caller look. */
const MISSING = new Set(['NonExistentQueue', 'QueueDoesNotExist', 'NotFound', 'ResourceNotFound'])

/** The caller lacks a right. */
const ACCESS_DENIED = new Set(['AccessDenied', 'AuthorizationError', 'UnauthorizedOperation'])

/** A service's code without what its protocols put around it: `AWS.SimpleQueueService.NonExistentQueue`, `ThrottlingException`. */
export function plainCode(code: string): string {
  return code
    .replace(/^.*#/, '')
    .replace(/^AWS\.SimpleQueueService\./, '')
    .replace(/Exception$/, '')
}

export function isThrottling(plain: string): boolean {
  return THROTTLING.has(plain)
}

export function isConfiguration(plain: string): boolean {
  return CONFIGURATION.has(plain) || (/^kms/i.test(plain) && !isThrottling(plain))
}

export function isMissing(plain: string): boolean {
  return MISSING.has(plain)
}

export function isAccessDenied(plain: string): boolean {
  return ACCESS_DENIED.has(plain)
}

/** Refused for the type of an event: others may pass. */
export function concernsOneType(plain: string): boolean {
  return plain === 'NotAuthorizedForDetailType'
}
