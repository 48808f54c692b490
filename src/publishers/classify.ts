import type { EntryAnswer, PublishAnswer } from '../core/outcome.js'
import { concernsOneType, isConfiguration, isThrottling, plainCode } from './fault-codes.js'

/** What one service says when it is the event that is wrong. Codes as `plainCode` gives them. */
export interface EventFaults {
  /** Codes of an entry, or of a request, that name something in it which will never be right. */
  readonly codes: ReadonlySet<string>
  /**
   * Matches a reason that names a field which the installation sets, the same for every event: then it is no event's fault,
   * whatever the code.
   */
  readonly installationFields: RegExp
}

/**
 * Classifies an entry that a service refused.
 *
 * @param senderFault - SQS and SNS: the service says that repeating it is pointless
 */
export function refusedEntry(
  faults: EventFaults,
  entry: { readonly code: string | undefined; readonly message: string | undefined; readonly senderFault?: boolean | undefined },
): EntryAnswer {
  const code = entry.code ?? 'Unknown'
  const reason = oneLine(entry.message, code)
  const fault = entryFault(faults, code, reason, entry.senderFault === true)
  const plain = plainCode(code)
  const configuration = isConfiguration(plain) && !concernsOneType(plain)
  return { kind: 'refused', fault, code, reason, ...(configuration ? { configuration } : {}) }
}

function entryFault(faults: EventFaults, code: string, reason: string, senderFault: boolean) {
  const plain = plainCode(code)
  if (isConfiguration(plain) || isThrottling(plain)) return 'destination'
  if (faults.codes.has(plain) || senderFault) return faults.installationFields.test(reason) ? 'destination' : 'event'
  return 'transient'
}

/**
 * Classifies what an SDK client threw for a request.
 *
 * A status of 400 that no table knows may be an event's fault or not: such a request is halved too, but an event that is
 * refused alone is then only refused for now, and charged if its neighbours are accepted; so neither can a poison event block
 * its destination, nor an unknown fault of the destination fail every event.
 *
 * @param entries - how many entries the request had
 */
export function failedRequest(faults: EventFaults, error: unknown, entries: number): PublishAnswer {
  const { codes, status, message } = readError(error)
  const [code] = codes
  const reason = oneLine(message, code)
  const plain = codes.map(plainCode)
  const destinationFault = (healing: 'heals' | 'configuration'): PublishAnswer => ({
    kind: 'destination-fault',
    code,
    reason,
    configuration: healing === 'configuration',
    ...(codes.includes('TimeoutError') ? { timedOut: true } : {}),
  })

  if (plain.some(isThrottling)) return destinationFault('heals')
  if (plain.some(isConfiguration) || reason === 'Region is missing') return destinationFault('configuration')
  // no answer, or none that could be read, or the service's own fault; 408 and 429 ask to come back
  if (status === undefined || status < 300 || status >= 500 || status === 408 || status === 429) return destinationFault('heals')
  // something in it, or it is too long (413)
  if (plain.some((name) => faults.codes.has(name)) || status === 413) {
    return faults.installationFields.test(reason) ? destinationFault('configuration') : { kind: 'request-fault', code, reason }
  }
  if (status < 400 || [401, 403, 404, 405].includes(status)) return destinationFault('configuration')
  return entries === 1
    ? { kind: 'answered', entries: [{ kind: 'refused', fault: 'transient', code, reason }] }
    : { kind: 'request-fault', code, reason }
}

/** What an SDK client threw, in a code and one line. */
export function describeFailure(error: unknown): { readonly code: string; readonly reason: string } {
  const { codes, message } = readError(error)
  return { code: codes[0], reason: oneLine(message, codes[0]) }
}

interface ReadError {
  /** What to call it, then other names it has. */
  readonly codes: readonly [string, ...string[]]
  /** Of the HTTP response; undefined if there was none. */
  readonly status: number | undefined
  readonly message: string
}

function readError(error: unknown): ReadError {
  const { name, code, Code, message, $metadata } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly [Field in 'name' | 'code' | 'Code' | 'message']?: unknown
  } & { readonly $metadata?: { readonly httpStatusCode?: number } }
  const known = [code, name, Code].filter((value): value is string => typeof value === 'string' && value !== '')
  return {
    codes: [known[0] ?? 'Unknown', ...known.slice(1)],
    status: $metadata?.httpStatusCode,
    message: typeof message === 'string' ? message : '',
  }
}

/**
 * The first line of a service's message (a signature mismatch goes on with the request's headers, session token included),
 * without values that a validation error quotes: they are the payload.
 */
function oneLine(message: string | undefined, fallback: string): string {
  const line = (message ?? '')
    .replace(/Value '[^]*' (?=at ')/, 'Value ')
    .split(/[\r\n]/, 1)
    .join('')
    .trim()
  return line === '' ? fallback : line
}
