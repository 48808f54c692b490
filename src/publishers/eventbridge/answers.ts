import type { PutEventsResultEntry } from '@aws-sdk/client-eventbridge'
import type { EntryAnswer } from '../../core/outcome.js'
import { refusedEntry } from '../classify.js'
import { EVENTBRIDGE_EVENT_FAULTS } from './faults.js'

/**
 * One answer per entry, by index: EventBridge answers with a list as long as the request's. If it is not, nobody knows which
 * entry an answer speaks of: then all are missing, since a duplicate is better than a loss.
 */
export function answersByIndex(results: readonly PutEventsResultEntry[] | undefined, entries: number): EntryAnswer[] {
  const aligned = results?.length === entries ? results : []
  return Array.from({ length: entries }, (_, index) => entryAnswer(aligned[index]))
}

function entryAnswer(result: PutEventsResultEntry | undefined): EntryAnswer {
  if (result?.ErrorCode !== undefined) {
    return refusedEntry(EVENTBRIDGE_EVENT_FAULTS, { code: result.ErrorCode, message: result.ErrorMessage })
  }
  return result?.EventId === undefined ? { kind: 'missing' } : { kind: 'accepted', messageId: result.EventId }
}
