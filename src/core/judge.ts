import type { ReadyEvent } from './batch.js'
import type { MessageAnswer } from './bisect.js'
import type { Circuit } from './circuit.js'
import type { Random } from './clock.js'
import type { Outcome } from './outcome.js'
import { decide, UNKNOWN, type Circumstances, type RetryPolicy } from './retry-policy.js'

/**
 * What a batch does with an event after the answer for it: record an outcome, give it up without one (`leave`: it was not sent),
 * or keep it in hand and send it again (`again`: its destination failed, and the circuit is not open).
 *
 * What the destination is to blame for is never charged: while its circuit is open the event is put aside, or, if it is the probe,
 * waits until the cool-down is over.
 *
 * @param circuit - of its destination, if it is open or half-open
 */
export function judge(
  answer: MessageAnswer,
  entry: ReadyEvent,
  circumstances: Circumstances,
  circuit: Circuit | undefined,
  policy: RetryPolicy,
  random: Pick<Random, 'next'>,
): Outcome | 'leave' | 'again' {
  if (answer.kind === 'unsent') return 'leave'
  const { event, destination } = entry
  const saysNothingOfIt =
    answer.kind === 'accepted' || circumstances.neighbourAccepted || (answer.kind === 'refused' && answer.fault === 'event')
  if (circuit !== undefined && !saysNothingOfIt) {
    const { code: errorCode, reason: error } = answer.kind === 'missing' ? UNKNOWN : answer
    return circuit.probeEvent === event.id
      ? { kind: 'retry', delayMs: circuit.retryInMs, charge: false, destination, errorCode, error }
      : { kind: 'hold', destination, errorCode, error }
  }
  if (answer.kind === 'destination-fault') return 'again'
  return decide(answer, entry, circumstances, policy, random)
}
