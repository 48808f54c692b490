import type { Message } from './ports.js'

/** Of one request: entries, and bytes of all its messages. */
export interface RequestLimits {
  readonly maxEntries: number
  readonly maxBytes: number
}

/**
 * The next request, taken from the front of a queue. Pure: the caller removes what it sends.
 *
 * A message that does not fit any more is passed over (smaller ones behind it fill the request), but never the first: even
 * one larger than a whole request, which no publisher prepares, is returned, alone. Order per key is not its concern: the
 * queue holds at most one event of a key (`Batch`).
 *
 * @example
 * const request = pack(batch.ready('orders'), publisher.limits)
 */
export function pack<Item extends { readonly message: Pick<Message, 'bytes'> }>(
  queue: readonly Item[],
  limits: RequestLimits,
): readonly Item[] {
  const request: Item[] = []
  let bytes = 0
  for (const item of queue) {
    if (request.length >= limits.maxEntries) break
    if (request.length > 0 && bytes + item.message.bytes > limits.maxBytes) continue
    request.push(item)
    bytes += item.message.bytes
  }
  return request
}
