import type { ReadyEvent } from './batch.js'
import { earlier, type Deadline } from './deadline.js'
import { SqlError } from './errors.js'
import type { Outcome } from './outcome.js'
import type { PassContext } from './pass-context.js'
import type { Message } from './ports.js'
import { rowMissing } from './prepare.js'
import { decideFaulty } from './suspect.js'

/**
 * The message of an event that is about to be sent, its payload fetched if that was too large for the claim; or what becomes of the
 * event in place of being sent.
 *
 * @throws `SqlError` if the database cannot be used.
 */
export async function loadMessage(context: PassContext, lease: Deadline, entry: ReadyEvent): Promise<Message | Outcome> {
  const { store, prepare, hardDeadline, settings } = context
  const { event, message, destination } = entry
  if (message !== null) return message
  const payload = await store.readPayload(event.id, { deadline: earlier(lease, hardDeadline) }).catch((error: unknown) => {
    // it will fail again, whenever it is read: a damaged row must not end the pass for all others
    if (!(error instanceof SqlError && error.kind === 'permanent')) throw error
    return decideFaulty(error, destination, { ...context, ...settings }, event)
  })
  if (typeof payload !== 'string') return payload ?? rowMissing(event)
  const prepared = prepare(event, payload)
  if (prepared.kind === 'decided') return prepared.outcome
  if (prepared.message === null) throw new Error(`event ${event.id} has a payload and no message`)
  return prepared.message
}

export function isOutcome(loaded: Message | Outcome): loaded is Outcome {
  return 'kind' in loaded
}
