import type { EventFaults } from '../classify.js'

/** What SQS says of a message, or of a batch for what is in it (API reference of SendMessageBatch, "Errors", and common errors). */
export const SQS_EVENT_FAULTS: EventFaults = {
  codes: new Set([
    'BatchEntryIdsNotDistinct',
    'BatchRequestTooLong',
    'EmptyBatchRequest',
    'InvalidAttributeName',
    'InvalidAttributeValue',
    'InvalidBatchEntryId',
    'InvalidMessageContents',
    'InvalidParameterCombination',
    'InvalidParameterValue',
    'MessageTooLong',
    'MissingParameter',
    'RequestEntityTooLarge',
    'TooManyEntriesInBatchRequest',
  ]),
  installationFields: /queue ?(url|name|type)/i,
}
