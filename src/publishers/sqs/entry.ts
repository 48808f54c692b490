import type { MessageAttributeValue, SendMessageBatchRequestEntry } from '@aws-sdk/client-sqs'
import type { SqsDestination } from '../../core/destination.js'
import type { OutboundEvent } from '../../core/event.js'
import { utf8Bytes } from '../../core/json-text.js'
import type { Preparation } from '../../core/ports.js'
import { fifoIds, isFifo } from '../fifo.js'
import { messageText } from '../message-text.js'
import { tooLarge } from '../size.js'

/** An entry without its Id, which is its place in the request. */
export type SqsEntry = Omit<SendMessageBatchRequestEntry, 'Id'>

/** What SQS takes in a body or an attribute: XML 1.0's characters. The body's JSON has the others escaped. */
const OUTSIDE_SQS = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u

/** Encodes one event for a queue, or says why the queue can never take it. */
export function encodeEntry(
  event: OutboundEvent,
  destination: SqsDestination,
  source: string,
  maxBytes: number,
): Preparation<SqsEntry> {
  if (OUTSIDE_SQS.test(event.eventType)) {
    return {
      ok: false,
      code: 'InvalidCharacters',
      reason: 'the event type contains a control character or U+FFFE or U+FFFF, which SQS does not take: use another event type',
    }
  }
  const text = messageText(event, destination.format, source)
  if (text.text === '') return { ok: false, code: 'EmptyBody', reason: 'the payload is empty, which SQS does not take: use {}' }

  const attributes = stringAttributes({ eventId: event.id, eventType: event.eventType, traceparent: text.header('traceparent') })
  const bytes = utf8Bytes(text.text) + attributeBytes(attributes)
  if (bytes > maxBytes) return tooLarge(bytes, maxBytes, 'the queue')

  const { groupId, deduplicationId } = fifoIds(event)
  return {
    ok: true,
    droppedHeaders: text.droppedHeaders,
    message: {
      eventId: event.id,
      bytes,
      entry: {
        MessageBody: text.text,
        MessageAttributes: attributes,
        ...(isFifo(destination.queueUrl) ? { MessageGroupId: groupId, MessageDeduplicationId: deduplicationId } : {}),
      },
    },
  }
}

function stringAttributes(values: Readonly<Record<string, string | undefined>>): Record<string, MessageAttributeValue> {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, { DataType: 'String', StringValue: value }]),
  )
}

/** SQS counts an attribute's name, type and value. */
function attributeBytes(attributes: Readonly<Record<string, MessageAttributeValue>>): number {
  return Object.entries(attributes).reduce(
    (bytes, [name, { DataType, StringValue }]) =>
      bytes + utf8Bytes(name) + utf8Bytes(DataType ?? '') + utf8Bytes(StringValue ?? ''),
    0,
  )
}
