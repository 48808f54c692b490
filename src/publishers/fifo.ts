import { createHash } from 'node:crypto'
import type { OutboundEvent } from '../core/event.js'

/** MessageGroupId of SQS and SNS: letters, digits and punctuation of ASCII, at most 128. */
const GROUP_ID = /^[\x21-\x7e]{1,128}$/

/** What a FIFO queue or topic orders and deduplicates by. */
export interface FifoIds {
  readonly groupId: string
  readonly deduplicationId: string
}

/** Whether a queue URL or topic ARN names a FIFO one. */
export function isFifo(address: string): boolean {
  return address.endsWith('.fifo')
}

/**
 * Group: the ordering key, or its SHA-256 in hex where FIFO's alphabet or length does not allow it; the event id without a
 * key. Deduplication: the event id, with the number of the replay after one, else the queue would swallow what was published
 * within five minutes before.
 */
export function fifoIds(event: Pick<OutboundEvent, 'id' | 'orderingKey' | 'replays'>): FifoIds {
  const key = event.orderingKey
  return {
    groupId: key === null ? event.id : GROUP_ID.test(key) ? key : createHash('sha256').update(key).digest('hex'),
    deduplicationId: event.replays === 0 ? event.id : `${event.id}-r${event.replays}`,
  }
}
