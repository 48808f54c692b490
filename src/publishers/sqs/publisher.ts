import { SendMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs'
import type { SqsDestination } from '../../core/destination.js'
import { MESSAGE_LIMITS } from '../../core/event-limits.js'
import type { Publisher } from '../../core/ports.js'
import { answersById, entryId } from '../batch-answers.js'
import { ownLimit, requestLimits, serviceLimit, settingLimit, smallestLimit } from '../byte-limit.js'
import { failedRequest } from '../classify.js'
import { encodeEntry, type SqsEntry } from './entry.js'
import { SQS_EVENT_FAULTS } from './faults.js'
import { MAX_ENTRIES } from './limits.js'

export interface SqsPublisherOptions {
  /** See `createSqsClient`: a client that retries by itself would send neighbours twice. */
  readonly client: Pick<SQSClient, 'send'>
  readonly destination: SqsDestination
  /** The CloudEvents source of every message. */
  readonly source: string
  /** Bytes that the queue takes by its own attribute (`readQueueBytes`). Without it the service's 1,048,576 hold. */
  readonly ownMaxBytes?: number | undefined
}

/**
 * Publishes to one SQS queue, standard or FIFO, by SendMessageBatch.
 *
 * @example
 * const publisher = createSqsPublisher({ client: createSqsClient({ requestTimeoutMs: 5000 }), destination, source: 'orders' })
 */
export function createSqsPublisher({ client, destination, source, ownMaxBytes }: SqsPublisherOptions): Publisher<SqsEntry> {
  const { maxBytes } = MESSAGE_LIMITS.sqs
  const limit = smallestLimit(serviceLimit('SQS', maxBytes), ownLimit(ownMaxBytes), settingLimit(destination.maxBytes))
  return {
    resource: destination.queueUrl,
    limits: requestLimits(MAX_ENTRIES, limit),
    prepare: (event) => encodeEntry(event, destination, source, limit),
    publish: async (messages) => {
      const Entries = messages.map(({ entry }, index) => ({ ...entry, Id: entryId(index) }))
      try {
        const answer = await client.send(new SendMessageBatchCommand({ QueueUrl: destination.queueUrl, Entries }))
        return { kind: 'answered', entries: answersById(SQS_EVENT_FAULTS, answer, messages.length) }
      } catch (error) {
        return failedRequest(SQS_EVENT_FAULTS, error, messages.length)
      }
    },
  }
}
