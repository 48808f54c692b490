import type { EventFaults } from '../classify.js'

/** What SNS says of a message, or of a batch for what is in it (API reference of PublishBatch, "Errors", and common errors). */
export const SNS_EVENT_FAULTS: EventFaults = {
  codes: new Set([
    'BatchEntryIdsNotDistinct',
    'BatchRequestTooLong',
    'EmptyBatchRequest',
    'InvalidBatchEntryId',
    'InvalidParameter',
    'InvalidParameterValue',
    'MissingParameter',
    'ParameterValueInvalid',
    'RequestEntityTooLarge',
    'TooManyEntriesInBatchRequest',
    'Validation',
  ]),
  // the topic is a setting, and with it whether it is FIFO
  installationFields: /(topic|target) ?arn|topic ?name/i,
}
