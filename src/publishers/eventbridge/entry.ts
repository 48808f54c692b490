import type { PutEventsRequestEntry } from '@aws-sdk/client-eventbridge'
import { rfc3339 } from '../../core/cloud-event.js'
import type { EventBridgeDestination } from '../../core/destination.js'
import { DETAIL_TYPE_CHARACTERS, TIME_BYTES } from '../../core/event-limits.js'
import type { OutboundEvent } from '../../core/event.js'
import { utf8Bytes } from '../../core/json-text.js'
import type { Preparation } from '../../core/ports.js'
import { tooLarge, type ByteLimit } from '../byte-limit.js'
import { messageText } from '../message-text.js'
import { MAX_TRACE_HEADER_CHARACTERS } from './limits.js'

export type EventBridgeEntry = PutEventsRequestEntry

/** The header X-Ray's trace context travels in between services. */
const TRACE_HEADER = 'X-Amzn-Trace-Id'

/** Encodes one event for a bus, or says why the bus can never take it. */
export function encodeEntry(
  event: OutboundEvent,
  destination: EventBridgeDestination,
  source: string,
  limit: ByteLimit,
): Preparation<EventBridgeEntry> {
  if (event.eventType.length > DETAIL_TYPE_CHARACTERS) {
    return {
      ok: false,
      code: 'DetailTypeTooLong',
      reason: `the event type has ${event.eventType.length} characters, EventBridge takes ${DETAIL_TYPE_CHARACTERS}: use a shorter event type`,
    }
  }
  const text = messageText(event, destination.format, source)
  const raw = destination.format === 'raw'
  if (raw && !/^\s*\{/.test(text.text)) {
    return {
      ok: false,
      code: 'DetailNotObject',
      reason: 'the payload is not a JSON object, as EventBridge demands of a raw one: use an object, or the format cloudevents',
    }
  }
  const entry: EventBridgeEntry = {
    EventBusName: destination.eventBusName,
    Source: source,
    DetailType: event.eventType,
    Detail: text.text,
    ...(rfc3339(event.createdAtMs) === null ? {} : { Time: new Date(event.createdAtMs) }),
    // a raw payload does not say which event it is
    ...(raw ? { Resources: [event.id] } : {}),
    ...traceHeader(text.header(TRACE_HEADER)),
  }
  const bytes = entryBytes(entry)
  if (bytes > limit.bytes) return tooLarge(bytes, limit, 'the bus')
  return { ok: true, droppedHeaders: text.droppedHeaders, message: { eventId: event.id, bytes, entry } }
}

function traceHeader(value: string | undefined): Pick<EventBridgeEntry, 'TraceHeader'> {
  return value === undefined || value.length > MAX_TRACE_HEADER_CHARACTERS ? {} : { TraceHeader: value }
}

/** EventBridge's own formula: the name of the bus and the trace header do not count. */
function entryBytes(entry: EventBridgeEntry): number {
  const texts = [entry.Source ?? '', entry.DetailType ?? '', entry.Detail ?? '', ...(entry.Resources ?? [])]
  return texts.reduce((bytes, text) => bytes + utf8Bytes(text), entry.Time === undefined ? 0 : TIME_BYTES)
}
