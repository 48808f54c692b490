import { InvalidEventError } from '../core/errors.js'
import type { NewEventRow } from '../store/postgres/insert-events.js'
import type { NewEvent } from './new-event.js'

const maxTextBytes = 255
const maxHeadersBytes = 8_192

/** `InvalidEventError` unless it is a list of objects: who writes JavaScript easily gives one event in place of a list. */
export function requireEvents(events: unknown): void {
  if (!Array.isArray(events)) throw new InvalidEventError('events', `events must be a list, not ${nameOf(events)}`)
  for (const [index, event] of events.entries()) {
    if (typeof event !== 'object' || event === null)
      throw new InvalidEventError(`events[${index}]`, `events[${index}] must be an object, not ${nameOf(event)}`)
  }
}

/** The row to write, or `InvalidEventError` for what the table's CHECKs would refuse. */
export function rowOf(event: NewEvent, id: string): NewEventRow {
  return {
    id,
    eventType: text('eventType', event.eventType, 1),
    payload: payloadText(event.payload),
    eventVersion: optional(event.eventVersion, version),
    aggregateType: optional(event.aggregateType, (value) => text('aggregateType', value, 0)),
    aggregateId: optional(event.aggregateId, (value) => text('aggregateId', value, 0)),
    orderingKey: optional(event.orderingKey, (value) => text('orderingKey', value, 1)),
    destination: optional(event.destination, (value) => text('destination', value, 1)),
    headers: optional(event.headers, headersText),
    idempotencyKey: optional(event.idempotencyKey, (value) => text('idempotencyKey', value, 1)),
    availableAt: optional(event.availableAt, timestamp),
  }
}

function optional<Value, Result>(value: Value | null | undefined, check: (value: Value) => Result): Result | undefined {
  return value === undefined || value === null ? undefined : check(value)
}

function text(field: string, value: unknown, minBytes: number): string {
  if (typeof value !== 'string') throw new InvalidEventError(field, `${field} must be a string, not ${nameOf(value)}`)
  const bytes = Buffer.byteLength(value)
  if (bytes < minBytes || bytes > maxTextBytes) {
    throw new InvalidEventError(field, `${field} must have ${minBytes} to ${maxTextBytes} bytes, not ${bytes}`)
  }
  requireStorable(field, value)
  if (value.includes('\0')) throw new InvalidEventError(field, `${field} must not contain the character U+0000`)
  return value
}

function version(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || Math.abs(value) > 2_147_483_647) {
    throw new InvalidEventError('eventVersion', `eventVersion must be a 32-bit integer, not ${String(value)}`)
  }
  return value
}

function timestamp(value: unknown): string {
  const time = value instanceof Date ? value.getTime() : NaN
  if (!(value instanceof Date) || Number.isNaN(time)) {
    throw new InvalidEventError('availableAt', `availableAt must be a valid Date, not ${nameOf(value)}`)
  }
  const year = value.getUTCFullYear()
  if (year < 1 || year > 9_999)
    throw new InvalidEventError('availableAt', `availableAt must lie in the years 1 to 9999, not ${year}`)
  return value.toISOString()
}

function headersText(headers: unknown): string {
  // a Map or the Headers of a request would become {}, and the trace be lost without a word
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
    throw new InvalidEventError('headers', `headers must be an object of strings, not ${nameOf(headers)}`)
  }
  for (const [name, value] of Object.entries(headers as Record<string, unknown>)) {
    if (typeof value !== 'string')
      throw new InvalidEventError(`headers.${name}`, `header "${name}" must be a string, not ${nameOf(value)}`)
  }
  const json = JSON.stringify(headers)
  const bytes = Buffer.byteLength(json)
  if (bytes > maxHeadersBytes) {
    throw new InvalidEventError('headers', `headers must have at most ${maxHeadersBytes} bytes as JSON, not ${bytes}`)
  }
  return json
}

function payloadText(payload: unknown): string {
  const json = typeof payload === 'string' ? payload : encoded(payload)
  if (typeof payload === 'string') requireJson(payload)
  if (/^\s*"/.test(json)) {
    throw new InvalidEventError(
      'payload',
      typeof payload === 'string'
        ? 'payload is a bare JSON string, so it was probably encoded twice: give the object itself, or its JSON text encoded once'
        : `payload must not become a bare JSON string, as ${nameOf(payload)} does: put it into an object`,
    )
  }
  return json
}

function encoded(payload: unknown): string {
  // JSON.stringify would make null of these
  if (typeof payload === 'number' && !Number.isFinite(payload)) {
    throw new InvalidEventError('payload', `payload must be a finite number, not ${payload}`)
  }
  let json: unknown
  try {
    json = JSON.stringify(payload)
  } catch (error) {
    throw new InvalidEventError(
      'payload',
      'payload cannot be encoded as JSON: it contains a bigint, a cycle, or a toJSON that throws',
      {
        cause: error,
      },
    )
  }
  if (typeof json !== 'string') {
    throw new InvalidEventError('payload', `payload must be a JSON value or its text, not ${nameOf(payload)}`)
  }
  return json
}

function requireJson(json: string): void {
  requireStorable('payload', json)
  try {
    JSON.parse(json)
  } catch {
    // the parser's own message quotes the payload
    throw new InvalidEventError(
      'payload',
      'payload is a string and must be valid JSON text; to send a plain text, put it into an object',
    )
  }
}

/** PostgreSQL's UTF-8 has no place for half a surrogate pair. */
function requireStorable(field: string, value: string): void {
  if (/\p{Surrogate}/u.test(value)) throw new InvalidEventError(field, `${field} must not contain half of a surrogate pair`)
}

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : 'a Date'
  if (typeof value === 'object' && Symbol.iterator in value) return `a ${value.constructor.name}`
  return typeof value === 'undefined' ? 'undefined' : `a value of type ${typeof value}`
}
