/** An event as a service writes it. */
export interface NewEvent {
  /** What happened, e.g. `OrderCreated`: 1 to 255 bytes. */
  readonly eventType: string
  /**
   * A string is taken as JSON text and delivered byte for byte; it must not be a bare JSON string, because that is what a
   * payload looks like that was encoded twice. Anything else is encoded with `JSON.stringify`.
   */
  readonly payload: unknown
  /** Version of the payload's shape, a 32-bit integer. Default 1. */
  readonly eventVersion?: number | undefined
  /** Kind of thing it happened to, e.g. `order`: at most 255 bytes. */
  readonly aggregateType?: string | undefined
  /** Which one: at most 255 bytes. */
  readonly aggregateId?: string | undefined
  /**
   * Events with the same key are delivered in commit order: 1 to 255 bytes. Until its transaction ends, other writers of the
   * key wait. Default: no order.
   */
  readonly orderingKey?: string | undefined
  /** Name of a configured destination, 1 to 255 bytes. Default: the routes decide. */
  readonly destination?: string | undefined
  /** Trace and correlation ids and the like: at most 8,192 bytes as JSON. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * What makes this event the same as another, whatever its content: 1 to 255 bytes, unique in the outbox until cleanup. A
   * second event with this key is not written, the first one's id is answered, and the transaction goes on. Default: none.
   */
  readonly idempotencyKey?: string | undefined
  /** Not to be delivered before; such an event has no order among those of its ordering key. Default: at once. */
  readonly availableAt?: Date | undefined
}
