import { reduceHeaders, type ReducedHeaders } from './cloud-event-headers.js'
import type { OutboundEvent } from './event.js'
import { escapeForbidden } from './json-text.js'

/** An event as JSON text, and how many of its headers could not come along. */
export interface EncodedEvent {
  readonly text: string
  readonly droppedHeaders: number
}

/** What of an event goes into a message. */
export type EventContent = Pick<
  OutboundEvent,
  'id' | 'eventType' | 'eventVersion' | 'aggregateId' | 'orderingKey' | 'headers' | 'payload' | 'createdAtMs'
>

/**
 * An event as CloudEvents 1.0 in structured JSON. The payload is put in as it is, byte for byte, never parsed; only characters
 * that a destination forbids are written as their JSON escapes. Absent fields are left out. The order of the fields is
 * fixed: `specversion`, `id`, `source`, `type`, `time`, `subject`, `datacontenttype`, `partitionkey`, `eventversion`, then the
 * headers as extension attributes (`reduceHeaders`), then `data`.
 *
 * @param settings - `source`: the CloudEvents source of this installation
 *
 * @example
 * cloudEvent(event, { source: 'orders' }).text
 * // {"specversion":"1.0","id":"0197f3a2-...","source":"orders","type":"OrderCreated",...,"data":{"orderId": 42}}
 */
export function cloudEvent(
  event: EventContent,
  settings: { readonly source: string },
  headers: ReducedHeaders = reduceHeaders(event.headers),
): EncodedEvent {
  // an empty text, which the column takes, is no subject in CloudEvents
  const subject = event.aggregateId === '' ? event.orderingKey : (event.aggregateId ?? event.orderingKey)
  const time = rfc3339(event.createdAtMs)
  const attributes: (readonly [string, string | number | null])[] = [
    ['specversion', '1.0'],
    ['id', event.id],
    ['source', settings.source],
    ['type', event.eventType],
    ['time', time],
    ['subject', subject],
    ['datacontenttype', 'application/json'],
    ['partitionkey', event.orderingKey],
    ['eventversion', event.eventVersion],
    ...headers.attributes,
  ]
  const members = attributes
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  return {
    text: escapeForbidden(`{${members.join(',')},"data":${event.payload}}`),
    droppedHeaders: headers.dropped,
  }
}

/** The payload alone, for `format: 'raw'`; characters that a destination forbids are written as their JSON escapes. */
export function rawEvent(event: Pick<EventContent, 'payload'>): EncodedEvent {
  return { text: escapeForbidden(event.payload), droppedHeaders: 0 }
}

/**
 * A moment as RFC 3339 in UTC with milliseconds; null outside the years 0 to 9999, which PostgreSQL can hold and RFC 3339
 * cannot write: a client's wild `created_at` must not keep its event from being sent.
 */
export function rfc3339(epochMs: number): string | null {
  const date = new Date(epochMs)
  if (Number.isNaN(date.getTime())) return null
  const text = date.toISOString()
  return text.length === '2026-11-29T10:00:00.123Z'.length ? text : null
}
