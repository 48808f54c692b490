import type { MessageFormat } from '../core/destination.js'
import { OUTSIDE_XML } from '../core/event-limits.js'
import type { OutboundEvent } from '../core/event.js'
import { utf8Bytes } from '../core/json-text.js'
import type { Preparation } from '../core/ports.js'
import { tooLarge, type ByteLimit } from './byte-limit.js'
import { messageText } from './message-text.js'

/** What SQS and SNS carry alike: a text, and string attributes outside it. */
export interface AttributedMessage {
  readonly text: string
  readonly attributes: Readonly<Record<string, { readonly DataType: 'String'; readonly StringValue: string }>>
  /** As both services count: the text; names, types and values of the attributes. */
  readonly bytes: number
  readonly droppedHeaders: number
}

export interface AttributedMessageOptions {
  readonly service: 'SQS' | 'SNS'
  /** What takes the message, in the words of a reason. */
  readonly taker: 'the queue' | 'the topic'
  readonly format: MessageFormat | undefined
  readonly source: string
  readonly limit: ByteLimit
}

type Refusal = Extract<Preparation, { readonly ok: false }>

/** Encodes an event as text and attributes, or says why the queue or topic can never take it. */
export function attributedMessage(
  event: OutboundEvent,
  { service, taker, format, source, limit }: AttributedMessageOptions,
): (AttributedMessage & { readonly ok: true }) | Refusal {
  if (OUTSIDE_XML.test(event.eventType)) {
    return {
      ok: false,
      code: 'InvalidCharacters',
      reason: `the event type contains a control character or U+FFFE or U+FFFF, which ${service} does not take: use another event type`,
    }
  }
  const encoded = messageText(event, format, source)
  const { text, droppedHeaders } = encoded
  if (text === '') return { ok: false, code: 'EmptyBody', reason: `the payload is empty, which ${service} does not take: use {}` }

  const attributes = stringAttributes({
    eventId: event.id,
    eventType: event.eventType,
    traceparent: encoded.header('traceparent'),
  })
  const bytes = utf8Bytes(text) + attributeBytes(attributes)
  if (bytes > limit.bytes) return tooLarge(bytes, limit, taker)
  return { ok: true, text, attributes, bytes, droppedHeaders }
}

function stringAttributes(values: Readonly<Record<string, string | undefined>>): AttributedMessage['attributes'] {
  const attributes: Record<string, { DataType: 'String'; StringValue: string }> = {}
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) attributes[name] = { DataType: 'String', StringValue: value }
  }
  return attributes
}

function attributeBytes(attributes: AttributedMessage['attributes']): number {
  return Object.entries(attributes).reduce(
    (bytes, [name, { DataType, StringValue }]) => bytes + utf8Bytes(name) + utf8Bytes(DataType) + utf8Bytes(StringValue),
    0,
  )
}
