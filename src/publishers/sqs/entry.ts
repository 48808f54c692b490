import type { SendMessageBatchRequestEntry } from '@aws-sdk/client-sqs'
import type { SqsDestination } from '../../core/destination.js'
import type { OutboundEvent } from '../../core/event.js'
import type { Preparation } from '../../core/ports.js'
import { attributedMessage } from '../attributed-message.js'
import type { ByteLimit } from '../byte-limit.js'
import { fifoIds, isFifo } from '../fifo.js'

/** An entry without its Id, which is its place in the request. */
export type SqsEntry = Omit<SendMessageBatchRequestEntry, 'Id'>

/** Encodes one event for a queue, or says why the queue can never take it. */
export function encodeEntry(
  event: OutboundEvent,
  destination: SqsDestination,
  source: string,
  limit: ByteLimit,
): Preparation<SqsEntry> {
  const message = attributedMessage(event, {
    service: 'SQS',
    taker: 'the queue',
    format: destination.format,
    source,
    limit,
  })
  if (!message.ok) return message
  const { groupId, deduplicationId } = fifoIds(event)
  const entry = {
    MessageBody: message.text,
    MessageAttributes: message.attributes,
    ...(isFifo(destination.queueUrl) ? { MessageGroupId: groupId, MessageDeduplicationId: deduplicationId } : {}),
  }
  return { ok: true, droppedHeaders: message.droppedHeaders, message: { eventId: event.id, bytes: message.bytes, entry } }
}
