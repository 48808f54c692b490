import type { OutboundEvent } from '../../src/core/event.js'

/** An event with a payload, as a claim returns it, with what a test changes about it. */
export function outboundEvent(changes: Partial<OutboundEvent> = {}): OutboundEvent {
  const payload = changes.payload ?? '{"orderId": 42}'
  return {
    id: '0197f3a2-5b1c-7d3e-8f00-0123456789ab',
    shard: 3,
    seq: 7n,
    eventType: 'OrderCreated',
    eventVersion: 1,
    aggregateType: null,
    aggregateId: null,
    orderingKey: null,
    destination: null,
    headers: null,
    attempts: 0,
    starts: 0,
    replays: 0,
    reclaimedFrom: null,
    released: false,
    createdAtMs: Date.UTC(2026, 10, 29, 10, 0, 0, 123),
    dueAtMs: Date.UTC(2026, 10, 29, 10, 0, 0, 123),
    payloadBytes: Buffer.byteLength(payload),
    ...changes,
    payload,
  }
}
