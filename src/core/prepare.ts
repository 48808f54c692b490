import type { Prepared } from './batch.js'
import type { Random } from './clock.js'
import type { ClaimedEvent } from './event.js'
import type { Outcome } from './outcome.js'
import type { Preparation, Publisher, Telemetry } from './ports.js'
import { decideUnrouted, decideUnsendable, type RetryPolicy } from './retry-policy.js'
import type { OnFailure, Routing } from './route.js'
import { CRASHES_THAT_FAIL, decideCrashed, decideFaulty } from './suspect.js'

export interface PrepareOptions {
  readonly route: (eventType: string, chosen: string | null) => Routing
  /** Destination name -> publisher. */
  readonly publishers: ReadonlyMap<string, Publisher>
  readonly policy: RetryPolicy
  readonly random: Random
  readonly telemetry: Telemetry
}

/** Routes and encodes one claimed event. `payload`: once it was fetched, for an event that is too large for a claim. */
export type Prepare = (event: ClaimedEvent, payload?: string) => Prepared

/**
 * Makes the function that turns a claimed event into a message for its destination, or says at once what becomes of it.
 */
export function createPrepare(options: PrepareOptions): Prepare {
  const { route, publishers, policy, random, telemetry } = options

  return (event, payload) => {
    const { eventType } = event
    if (eventType === null) return decided(rowMissing(event))
    const routing = route(eventType, event.destination)
    if (routing.kind === 'unrouted') return decided(decideUnrouted(routing, policy, random))
    const { destination, onFailure } = routing
    const publisher = publishers.get(destination)
    if (publisher === undefined) {
      const reason = `this release has no publisher for the type of destination "${destination}"`
      return decided(decideUnrouted({ kind: 'unrouted', destination, reason }, policy, random))
    }
    if (event.starts >= CRASHES_THAT_FAIL) return decided(decideCrashed({ event, destination, onFailure }))
    // refused by its size alone, so that a payload of any size is never fetched in vain
    const { maxBytes, maxBytesFrom } = publisher.limits
    if (event.payloadBytes > maxBytes) {
      const takes = maxBytesFrom === undefined ? maxBytes : `${maxBytes} (${maxBytesFrom})`
      const reason = `the payload has ${event.payloadBytes} bytes, destination "${destination}" takes ${takes} in one message: store it elsewhere and send a reference`
      return unsendable({ code: 'PayloadTooLarge', reason }, event, destination, onFailure)
    }
    const text = payload ?? event.payload
    if (text === null) return { kind: 'ready', destination, onFailure, message: null }
    let preparation: Preparation
    try {
      preparation = publisher.prepare({ ...event, eventType, payload: text })
    } catch (error) {
      return decided(decideFaulty(error, destination, options, event))
    }
    if (!preparation.ok) return unsendable(preparation, event, destination, onFailure)
    if (preparation.droppedHeaders > 0) telemetry.metric('DroppedHeaders', preparation.droppedHeaders, { destination })
    return { kind: 'ready', destination, onFailure, message: preparation.message }
  }
}

/** Somebody deleted the event's row by hand: there is nothing left to send. */
export function rowMissing(event: ClaimedEvent): Outcome {
  return {
    kind: 'failed',
    charge: false,
    block: event.orderingKey !== null,
    destination: event.destination,
    errorCode: 'EventRowMissing',
    error: 'the row of this event was deleted from the outbox table before it was delivered: discard it',
  }
}

function unsendable(
  refusal: { readonly code: string; readonly reason: string },
  event: ClaimedEvent,
  destination: string,
  onFailure: OnFailure,
): Prepared {
  return decided(decideUnsendable(refusal, { event, destination, onFailure }))
}

function decided(outcome: Outcome): Prepared {
  return { kind: 'decided', outcome }
}
