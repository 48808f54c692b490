import { PublishBatchCommand, type SNSClient } from '@aws-sdk/client-sns'
import type { SnsDestination } from '../../core/destination.js'
import { MESSAGE_LIMITS } from '../../core/event-limits.js'
import type { Publisher } from '../../core/ports.js'
import { answersById, entryId } from '../batch-answers.js'
import { ownLimit, requestLimits, serviceLimit, settingLimit, smallestLimit } from '../byte-limit.js'
import { failedRequest } from '../classify.js'
import { encodeEntry, type SnsEntry } from './entry.js'
import { SNS_EVENT_FAULTS } from './faults.js'
import { MAX_ENTRIES } from './limits.js'

export interface SnsPublisherOptions {
  /** See `createSnsClient`: a client that retries by itself would send neighbours twice. */
  readonly client: Pick<SNSClient, 'send'>
  readonly destination: SnsDestination
  /** The CloudEvents source of every message. */
  readonly source: string
  /**
   * Bytes that the topic takes by its own attribute (`readTopicBytes`). Without it the destination's `maxBytes` holds, and
   * without that 262,144, the default of SNS.
   */
  readonly ownMaxBytes?: number | undefined
}

/**
 * Publishes to one SNS topic, standard or FIFO, by PublishBatch.
 *
 * @example
 * const publisher = createSnsPublisher({ client: createSnsClient({ requestTimeoutMs: 5000 }), destination, source: 'orders' })
 */
export function createSnsPublisher({ client, destination, source, ownMaxBytes }: SnsPublisherOptions): Publisher<SnsEntry> {
  const { defaultBytes, maxBytes } = MESSAGE_LIMITS.sns
  const own = ownLimit(ownMaxBytes)
  const setting = settingLimit(destination.maxBytes)
  const limit = smallestLimit(
    serviceLimit('SNS', maxBytes),
    own ?? setting ?? { bytes: defaultBytes, from: 'the default of SNS' },
    setting,
  )
  return {
    resource: destination.topicArn,
    limits: requestLimits(MAX_ENTRIES, limit),
    prepare: (event) => encodeEntry(event, destination, source, limit),
    publish: async (messages) => {
      const PublishBatchRequestEntries = messages.map(({ entry }, index) => ({ ...entry, Id: entryId(index) }))
      try {
        const answer = await client.send(new PublishBatchCommand({ TopicArn: destination.topicArn, PublishBatchRequestEntries }))
        return { kind: 'answered', entries: answersById(SNS_EVENT_FAULTS, answer, messages.length) }
      } catch (error) {
        return failedRequest(SNS_EVENT_FAULTS, error, messages.length)
      }
    },
  }
}
