import type { EntryAnswer } from '../core/outcome.js'
import { refusedEntry, type EventFaults } from './classify.js'

/** The answer of SQS and SNS to a batch: two lists, each of which is undefined if nothing is in it. */
export interface BatchAnswer {
  readonly Successful?: readonly { readonly Id?: string | undefined; readonly MessageId?: string | undefined }[] | undefined
  readonly Failed?:
    | readonly {
        readonly Id?: string | undefined
        readonly Code?: string | undefined
        readonly Message?: string | undefined
        readonly SenderFault?: boolean | undefined
      }[]
    | undefined
}

/** An entry's Id within its request: its index, because an event id may be of any length and need not be unique in a batch. */
export function entryId(index: number): string {
  return String(index)
}

/** One answer per entry, by Id. An entry in neither list is missing; one in both is refused, since a duplicate is better than a loss. */
export function answersById(faults: EventFaults, answer: BatchAnswer, entries: number): EntryAnswer[] {
  const byId = new Map<string | undefined, EntryAnswer>()
  for (const { Id, MessageId } of answer.Successful ?? []) byId.set(Id, { kind: 'accepted', messageId: MessageId ?? '' })
  for (const { Id, Code, Message, SenderFault } of answer.Failed ?? []) {
    byId.set(Id, refusedEntry(faults, { code: Code, message: Message, senderFault: SenderFault }))
  }
  return Array.from({ length: entries }, (_, index) => byId.get(entryId(index)) ?? { kind: 'missing' })
}
