import type { DestinationFault } from '../../src/core/bisect.js'
import type { OutboundEvent } from '../../src/core/event.js'
import type { EntryAnswer, PublishAnswer } from '../../src/core/outcome.js'
import type { Message, Publisher } from '../../src/core/ports.js'

export type Script = (events: readonly OutboundEvent[], request: number) => PublishAnswer | Promise<PublishAnswer>

/**
 * A destination that answers by script, and watches what no destination may see: two events of a key in one request, or an
 * event of a key while an earlier one is unanswered or was not accepted.
 */
export class ScriptedPublisher implements Publisher<OutboundEvent> {
  readonly limits: { readonly maxEntries: number; readonly maxBytes: number }
  readonly resource = 'scripted'
  readonly requests: (readonly OutboundEvent[])[] = []
  /** In order of acceptance; duplicates included. */
  readonly accepted: OutboundEvent[] = []
  inFlight = 0
  script: Script = acceptAll

  constructor(
    readonly order: OrderWatch = new OrderWatch(),
    limits: { readonly maxEntries?: number; readonly maxBytes?: number } = {},
  ) {
    this.limits = { maxEntries: 10, maxBytes: 1_048_576, ...limits }
  }

  prepare(event: OutboundEvent) {
    const bytes = Buffer.byteLength(event.payload)
    if (bytes > this.limits.maxBytes) return { ok: false as const, code: 'PayloadTooLarge', reason: `${bytes} bytes` }
    return { ok: true as const, message: { eventId: event.id, bytes, entry: event }, droppedHeaders: 0 }
  }

  async publish(messages: readonly Message<OutboundEvent>[]): Promise<PublishAnswer> {
    const events = messages.map(({ entry }) => entry)
    this.requests.push(events)
    this.order.sent(events)
    this.inFlight += 1
    try {
      const answer = await this.script(events, this.requests.length)
      events.forEach((event, index) => {
        const accepted = answer.kind === 'answered' && answer.entries[index]?.kind === 'accepted'
        if (accepted) this.accepted.push(event)
        this.order.answered(event, accepted)
      })
      return answer
    } finally {
      this.inFlight -= 1
    }
  }

  acceptedIds(): string[] {
    return this.accepted.map(({ id }) => id)
  }
}

/** Shared by all destinations of a test, since order per key holds across them. */
export class OrderWatch {
  readonly violations: string[] = []
  readonly #out = new Map<string, string>()
  readonly #lastAccepted = new Map<string, bigint>()

  sent(events: readonly OutboundEvent[]): void {
    for (const { id, orderingKey } of events) {
      if (orderingKey === null) continue
      const other = this.#out.get(orderingKey)
      if (other !== undefined && other !== id)
        this.violations.push(`${id} sent while ${other} of key ${orderingKey} is unanswered`)
      this.#out.set(orderingKey, id)
    }
  }

  answered({ id, orderingKey, seq }: OutboundEvent, accepted: boolean): void {
    if (orderingKey === null) return
    if (this.#out.get(orderingKey) === id) this.#out.delete(orderingKey)
    if (!accepted) return
    const last = this.#lastAccepted.get(orderingKey) ?? -1n
    if (seq < last) this.violations.push(`${id} (seq ${seq}) accepted after seq ${last} of key ${orderingKey}`)
    if (seq > last) this.#lastAccepted.set(orderingKey, seq)
  }
}

export const accepted = (event: OutboundEvent): EntryAnswer => ({ kind: 'accepted', messageId: `m-${event.seq}` })

export const acceptAll: Script = (events) => ({ kind: 'answered', entries: events.map(accepted) })

export const fault = (code = 'ServiceUnavailable'): DestinationFault => ({
  kind: 'destination-fault',
  code,
  reason: `the destination answered ${code}`,
  configuration: false,
})

/** Answers per entry; `undefined` accepts it. */
export const perEntry =
  (answer: (event: OutboundEvent, request: number) => EntryAnswer | undefined): Script =>
  (events, request) => ({ kind: 'answered', entries: events.map((event) => answer(event, request) ?? accepted(event)) })
