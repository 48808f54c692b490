import type { Publisher } from '../core/ports.js'

/**
 * A publisher that sends nothing: every request fails whole, as a fault of its destination. For a bus that does not exist,
 * since EventBridge would answer success and the events would be gone.
 *
 * @param reason - why, in one line
 */
export function withheld<Entry>(publisher: Publisher<Entry>, reason: string): Publisher<Entry> {
  return {
    resource: publisher.resource,
    limits: publisher.limits,
    prepare: (event) => publisher.prepare(event),
    publish: () => Promise.resolve({ kind: 'destination-fault', code: 'DestinationMissing', reason, configuration: true }),
  }
}
