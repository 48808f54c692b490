import type { PublishBatchRequestEntry } from '@aws-sdk/client-sns'
import type { SnsDestination } from '../../core/destination.js'
import type { OutboundEvent } from '../../core/event.js'
import type { Preparation } from '../../core/ports.js'
import { attributedMessage } from '../attributed-message.js'
import type { ByteLimit } from '../byte-limit.js'
import { fifoIds, isFifo } from '../fifo.js'

/** An entry without its Id, which is its place in the request. */
export type SnsEntry = Omit<PublishBatchRequestEntry, 'Id'>

/** Encodes one event for a topic, or says why the topic can never take it. */
export function encodeEntry(
  event: OutboundEvent,
  destination: SnsDestination,
  source: string,
  limit: ByteLimit,
): Preparation<SnsEntry> {
  const message = attributedMessage(event, {
    service: 'SNS',
    taker: 'the topic',
    format: destination.format,
    source,
    limit,
  })
  if (!message.ok) return message
  const { groupId, deduplicationId } = fifoIds(event)
  const entry = {
    Message: message.text,
    MessageAttributes: message.attributes,
    ...(isFifo(destination.topicArn) ? { MessageGroupId: groupId, MessageDeduplicationId: deduplicationId } : {}),
  }
  return { ok: true, droppedHeaders: message.droppedHeaders, message: { eventId: event.id, bytes: message.bytes, entry } }
}
