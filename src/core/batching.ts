import type { Message } from './ports.js'

/** An event that waits to be sent. */
export interface QueuedMessage {
  readonly destination: string
  readonly orderingKey: string | null
  readonly message: Pick<Message, 'bytes'>
}

/** Of one request: entries, and bytes of all its messages. */
export interface RequestLimits {
  readonly maxEntries: number
  readonly maxBytes: number
}

/**
 * The next request to one destination, taken from the front of the queue. Pure: the caller removes what it sends from the
 * queue and keeps the keys of it busy until they are confirmed.
 *
 * An event is passed over while its ordering key is busy, or while an earlier event of its key is in the queue, for whatever
 * destination: so a request holds at most one event of a key, and first acceptances of a key come in order. One that does not
 * fit any more is passed over too (smaller ones behind it fill the request), but never the first: even a message larger than
 * a whole request, which no publisher prepares, is returned, alone.
 *
 * @param queue - what waits, for all destinations, in delivery order
 * @param busyKeys - ordering keys with an event that is in flight, or that failed to be sent and is not settled yet
 * @returns what to send, in order; empty if nothing can be sent to this destination now
 *
 * @example
 * const request = pack(queue, 'orders', publisher.limits, busyKeys)
 */
export function pack<Item extends QueuedMessage>(
  queue: readonly Item[],
  destination: string,
  limits: RequestLimits,
  busyKeys: ReadonlySet<string>,
): readonly Item[] {
  const request: Item[] = []
  const passedKeys = new Set<string>()
  let bytes = 0
  for (const item of queue) {
    if (request.length >= limits.maxEntries) break
    const key = item.orderingKey
    if (key !== null) {
      if (busyKeys.has(key) || passedKeys.has(key)) continue
      passedKeys.add(key)
    }
    if (item.destination !== destination) continue
    if (request.length > 0 && bytes + item.message.bytes > limits.maxBytes) continue
    request.push(item)
    bytes += item.message.bytes
  }
  return request
}
