/** One event as a claim returns it: the row of `outbox`, and what its queue row adds. */
export interface ClaimedEvent {
  /** UUID; the same on every retry, redrive and replay. */
  readonly id: string
  /** 0..15; the shard whose lease covers this event. */
  readonly shard: number
  /** Delivery order within an ordering key. */
  readonly seq: bigint
  /** null: somebody deleted the event's row by hand; such an event is settled as failed. */
  readonly eventType: string | null
  readonly eventVersion: number
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly orderingKey: string | null
  /** The row's own choice of destination; null leaves it to the routes. */
  readonly destination: string | null
  /** A JSON object, verbatim; null if absent. */
  readonly headers: string | null
  /** Charged attempts so far. */
  readonly attempts: number
  /** Relays that ended with this event, and no other, in hand. */
  readonly starts: number
  /** Times it was replayed. */
  readonly replays: number
  /** It is a suspect: what it was leased for ended without a word. The relay that leased it then; null: no suspect. */
  readonly reclaimedFrom: string | null
  /** It was aside and came back: it is not put aside again for being one too many. */
  readonly released: boolean
  readonly createdAtMs: number
  readonly dueAtMs: number
  readonly payloadBytes: number
  /** JSON text, verbatim; null if it was too large to come with the claim (above 48,000 bytes): fetched in chunks. */
  readonly payload: string | null
}

/** An event whose row exists and whose payload is here: what publishers encode. */
export interface OutboundEvent extends ClaimedEvent {
  readonly eventType: string
  readonly payload: string
}
