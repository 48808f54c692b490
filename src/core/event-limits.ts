import { cloudEvent, rawEvent, rfc3339, type EventContent } from './cloud-event.js'
import { reduceHeaders } from './cloud-event-headers.js'
import type { Destination } from './destination.js'
import { utf8Bytes } from './json-text.js'

/** What each service takes of one message, and of a request's messages together, in bytes. */
export const MESSAGE_LIMITS = {
  // "total entry size must be less than 1MB" (since January 2026; 256 KB before), without saying whether of an entry or of a
  // request, nor of which megabyte: the reading that always fits
  eventbridge: { defaultBytes: 1_000_000, maxBytes: 1_000_000 },
  // 1 MiB since August 2025 (SQS quotas, "Message size")
  sqs: { defaultBytes: 1_048_576, maxBytes: 1_048_576 },
  // 256 KiB unless the topic's attribute MaximumMessageSize says otherwise, up to 1 MiB since 2026; what it says is not known
  // here, so its destination's `maxBytes` must repeat it (API reference of PublishBatch)
  sns: { defaultBytes: 262_144, maxBytes: 1_048_576 },
} as const

/** Of a message whose destination is not known: what every service takes that was not set to take less, but for SNS. */
export const UNROUTED_BYTES = 1_000_000

/** Characters of an EventBridge DetailType (API reference of PutEventsRequestEntry). */
export const DETAIL_TYPE_CHARACTERS = 128
/** Levels of an EventBridge Detail. */
const DETAIL_LEVELS = 1_000
/** What EventBridge adds to an entry's size for its Time (user guide, "Calculating PutEvents event entry size"). */
export const TIME_BYTES = 14
const INT64_MAX = 9_223_372_036_854_775_807n

/** What SQS and SNS do not take in a text or an attribute: all that is not a character of XML 1.0. A text's JSON has it escaped. */
export const OUTSIDE_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u
/** What an attribute outside the text must be, to be sent. */
export const PRINTABLE_ASCII = /^[\x20-\x7e]+$/

/** Why an event can never be delivered as it is. */
export interface DeliveryProblem {
  readonly field: 'eventType' | 'payload'
  /** One line: what was wrong, the value seen, the value allowed, what to do. Nothing of the payload. */
  readonly reason: string
}

/**
 * Whether a destination can ever take an event: what a publisher would refuse for good, and what the service would. null: it
 * can, as far as anybody knows before sending it.
 *
 * @param name - the destination's, for the reason
 * @param source - the CloudEvents source that the relay is set to
 *
 * @example
 * deliveryProblem(event, 'bus', { type: 'eventbridge', eventBusName: 'orders' }, 'orders')
 */
export function deliveryProblem(
  event: EventContent,
  name: string,
  destination: Destination,
  source: string,
): DeliveryProblem | null {
  const taker = `destination "${name}"`
  const limit = MESSAGE_LIMITS[destination.type]
  const maxBytes = Math.min(destination.maxBytes ?? limit.defaultBytes, limit.maxBytes)
  if (destination.type === 'eventbridge') {
    return (
      detailTypeProblem(event, taker) ??
      detailProblem(event, taker, destination.format === 'raw') ??
      sizeProblem(eventBridgeBytes(event, destination, source), maxBytes, `${taker} takes ${maxBytes}`)
    )
  }
  if (OUTSIDE_XML.test(event.eventType)) {
    return {
      field: 'eventType',
      reason: `eventType contains a control character or U+FFFE or U+FFFF, which ${taker} (${destination.type.toUpperCase()}) does not take: use another event type`,
    }
  }
  return sizeProblem(attributedBytes(event, destination, source), maxBytes, `${taker} takes ${maxBytes}`)
}

/** The size of an event whose destination is not known, counted as EventBridge does, which takes the least by default. */
export function unroutedProblem(event: EventContent, source: string): DeliveryProblem | null {
  return sizeProblem(
    eventBridgeBytes(event, {}, source),
    UNROUTED_BYTES,
    `${UNROUTED_BYTES} are allowed where the writer was not given destinations`,
  )
}

function sizeProblem(bytes: number, maxBytes: number, allowed: string): DeliveryProblem | null {
  return bytes <= maxBytes
    ? null
    : {
        field: 'payload',
        reason: `payload makes a message of ${bytes} bytes, and ${allowed}: store the data elsewhere and put a reference to it into the payload`,
      }
}

function textOf(event: EventContent, { format }: Pick<Destination, 'format'>, source: string): string {
  return format === 'raw' ? rawEvent(event).text : cloudEvent(event, { source }).text
}

/** EventBridge's own formula: the name of the bus and the trace header do not count. */
function eventBridgeBytes(event: EventContent, destination: Pick<Destination, 'format'>, source: string): number {
  const texts = [source, event.eventType, textOf(event, destination, source), ...(destination.format === 'raw' ? [event.id] : [])]
  return texts.reduce((bytes, text) => bytes + utf8Bytes(text), rfc3339(event.createdAtMs) === null ? 0 : TIME_BYTES)
}

/** SQS and SNS count the body, and the names, types and values of the attributes. */
function attributedBytes(event: EventContent, destination: Pick<Destination, 'format'>, source: string): number {
  const traceparent = reduceHeaders(event.headers).attributes.get('traceparent') ?? ''
  const attributes = { eventId: event.id, eventType: event.eventType, traceparent }
  return Object.entries(attributes).reduce(
    (bytes, [name, value]) =>
      name === 'traceparent' && !PRINTABLE_ASCII.test(value) ? bytes : bytes + utf8Bytes(`${name}String${value}`),
    utf8Bytes(textOf(event, destination, source)),
  )
}

function detailTypeProblem({ eventType }: EventContent, taker: string): DeliveryProblem | null {
  if (eventType.length <= DETAIL_TYPE_CHARACTERS) return null
  return {
    field: 'eventType',
    reason: `eventType has ${eventType.length} characters, and ${taker} (EventBridge) takes ${DETAIL_TYPE_CHARACTERS}: use a shorter one`,
  }
}

/** What EventBridge calls a malformed Detail. Read from the text: a parser would have rounded a large integer already. */
function detailProblem({ payload }: EventContent, taker: string, raw: boolean): DeliveryProblem | null {
  const problem = (what: string): DeliveryProblem => ({ field: 'payload', reason: `payload ${what}` })
  if (raw && !/^\s*\{/.test(payload)) {
    return problem(`must be a JSON object for ${taker} (EventBridge, format raw): use an object, or the format cloudevents`)
  }
  const maxLevels = raw ? DETAIL_LEVELS : DETAIL_LEVELS - 1
  const { levels, beyondInt64 } = inspect(payload)
  if (beyondInt64) {
    return problem(`contains an integer beyond 64 bits, which ${taker} (EventBridge) does not take: write it as a string`)
  }
  if (levels > maxLevels) {
    return problem(`is nested ${levels} levels deep, and ${taker} (EventBridge) takes ${maxLevels}: use a flatter one`)
  }
  return null
}

/** One walk over valid JSON text, without recursion: it may be a megabyte, and nested as deep. */
function inspect(json: string): { readonly levels: number; readonly beyondInt64: boolean } {
  const number = /-?\d[\d.eE+-]*/y
  let depth = 0
  let levels = 0
  let beyondInt64 = false
  for (let index = 0; index < json.length; index++) {
    const char = json.charAt(index)
    if (char === '{' || char === '[') {
      depth += 1
      levels = Math.max(levels, depth)
    } else if (char === '}' || char === ']') {
      depth -= 1
    } else if (char === '"') {
      index += 1
      while (index < json.length && json.charAt(index) !== '"') index += json.charAt(index) === '\\' ? 2 : 1
    } else if (char === '-' || (char >= '0' && char <= '9')) {
      number.lastIndex = index
      const [token = char] = number.exec(json) ?? []
      beyondInt64 ||= isBeyondInt64(token)
      index += token.length - 1
    }
  }
  return { levels, beyondInt64 }
}

function isBeyondInt64(token: string): boolean {
  // 18 digits always fit
  if (token.length < 19 || !/^-?\d+$/.test(token)) return false
  const value = BigInt(token)
  return value > INT64_MAX || value < -INT64_MAX - 1n
}
