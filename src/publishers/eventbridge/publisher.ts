import { PutEventsCommand, type EventBridgeClient } from '@aws-sdk/client-eventbridge'
import type { EventBridgeDestination } from '../../core/destination.js'
import { MESSAGE_LIMITS } from '../../core/event-limits.js'
import type { Publisher } from '../../core/ports.js'
import { requestLimits, serviceLimit, settingLimit, smallestLimit } from '../byte-limit.js'
import { failedRequest } from '../classify.js'
import { answersByIndex } from './answers.js'
import { encodeEntry, type EventBridgeEntry } from './entry.js'
import { EVENTBRIDGE_EVENT_FAULTS } from './faults.js'
import { MAX_ENTRIES } from './limits.js'

export interface EventBridgePublisherOptions {
  /** See `createEventBridgeClient`: a client that retries by itself would send neighbours twice. */
  readonly client: Pick<EventBridgeClient, 'send'>
  readonly destination: EventBridgeDestination
  /** `Source` of every entry and CloudEvents source of every message; must not begin with `aws.`. */
  readonly source: string
}

/**
 * Publishes to one EventBridge bus by PutEvents.
 *
 * @example
 * const client = createEventBridgeClient({ requestTimeoutMs: 5000 })
 * const publisher = createEventBridgePublisher({ client, destination, source: 'orders' })
 */
export function createEventBridgePublisher(options: EventBridgePublisherOptions): Publisher<EventBridgeEntry> {
  const { client, destination, source } = options
  const { maxBytes } = MESSAGE_LIMITS.eventbridge
  const limit = smallestLimit(serviceLimit('EventBridge', maxBytes), settingLimit(destination.maxBytes))
  return {
    resource: destination.eventBusName,
    limits: requestLimits(MAX_ENTRIES, limit),
    prepare: (event) => encodeEntry(event, destination, source, limit),
    publish: async (messages) => {
      try {
        const answer = await client.send(new PutEventsCommand({ Entries: messages.map(({ entry }) => entry) }))
        return { kind: 'answered', entries: answersByIndex(answer.Entries, messages.length) }
      } catch (error) {
        return failedRequest(EVENTBRIDGE_EVENT_FAULTS, error, messages.length)
      }
    },
  }
}
