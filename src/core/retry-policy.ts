import type { DestinationFault, MessageAnswer, Publication } from './bisect.js'
import type { Random } from './clock.js'
import type { ClaimedEvent } from './event.js'
import type { EntryAnswer, Outcome } from './outcome.js'
import { retryDelayMs, UNCHARGED_CAP_MS, type RetryDelays } from './retry-delays.js'
import type { OnFailure, Routing } from './route.js'

/** What `outbox_delivery.last_error` keeps. */
const ERROR_TEXT_CHARACTERS = 2000

export interface RetryPolicy extends RetryDelays {
  /** Charged attempts after which an event fails. */
  readonly maxAttempts: number
}

/** What becomes of one event for what was answered for it. */
export type Decision = Exclude<Outcome, { readonly kind: 'hold' }>

/** What is sent to where: all that a decision needs of an event. */
export interface Attempt {
  readonly event: Pick<ClaimedEvent, 'attempts' | 'orderingKey'>
  readonly destination: string
  readonly onFailure: OnFailure
}

/** What else happened, which tells the event's fault from the destination's. */
export interface Circumstances {
  /** Another entry of the same request was accepted: `acceptedAny(publication)`. */
  readonly neighbourAccepted: boolean
  /** Requests to this destination, this one included, that nothing was accepted of, in a row: `countFaults`. */
  readonly consecutiveFaults: number
}

/**
 * What the relay makes of the answer for one event.
 *
 * - accepted: published.
 * - refused for what the event is: failed at once. It was sent, so the attempt is charged, but that is not what failed it.
 * - refused for no reason that lies in the event, or missing from the answer: retried, and charged only if a neighbour in the
 *   same request was accepted. If that charge is the last of `maxAttempts`, failed.
 * - refused for the destination's fault, or the request failed whole: retried without charge; the delay grows with the
 *   destination's consecutive faults up to a minute.
 *
 * @example
 * decide(answer, { event, destination: 'orders', onFailure: 'block' }, { neighbourAccepted: true, consecutiveFaults: 0 }, policy, random)
 */
export function decide(
  answer: EntryAnswer | DestinationFault,
  attempt: Attempt,
  circumstances: Circumstances,
  policy: RetryPolicy,
  random: Pick<Random, 'next'>,
): Decision {
  const { destination } = attempt
  switch (answer.kind) {
    case 'accepted':
      return { kind: 'published', destination, messageId: storableText(answer.messageId) }
    case 'destination-fault':
      return retryUncharged(answer, attempt, circumstances, policy, random)
    case 'missing':
      return decideTransient(UNKNOWN, attempt, circumstances, policy, random)
    case 'refused':
      switch (answer.fault) {
        case 'event':
          return fail(answer, attempt, 'charged')
        case 'destination':
          return retryUncharged(answer, attempt, circumstances, policy, random)
        case 'transient':
          return decideTransient(answer, attempt, circumstances, policy, random)
      }
  }
}

/** For an event that was never sent, because it can never be (`Preparation` not ok, its row deleted by hand): failed, not charged. */
export function decideUnsendable(refusal: Refusal, attempt: Attempt): Decision {
  return fail(refusal, attempt, 'uncharged')
}

/**
 * For an event without a route, or whose destination is not configured: an operator's fault. Retried without charge after at
 * most a minute, with full jitter; never failed.
 */
export function decideUnrouted(
  routing: Extract<Routing, { readonly kind: 'unrouted' }>,
  policy: RetryPolicy,
  random: Pick<Random, 'next'>,
): Decision {
  return {
    kind: 'retry',
    // not exponential: only a new configuration helps, and a relay that has it is a new process
    delayMs: Math.floor(random.next() * unchargedCapMs(policy)) + 1,
    charge: false,
    destination: routing.destination,
    errorCode: routing.destination === null ? 'NoRoute' : 'UnknownDestination',
    error: storableText(routing.reason),
  }
}

/** Whether anything of a publication was accepted: then the others' transient refusals are charged. */
export function acceptedAny(publication: Publication): boolean {
  return publication.answers.some(({ kind }) => kind === 'accepted')
}

/** A destination's consecutive faults after one more publication: 0 once anything is accepted, unchanged if nothing was sent. */
export function countFaults(faults: number, publication: Publication): number {
  if (acceptedAny(publication)) return 0
  const { answers } = publication
  // an event refused for itself says nothing about the destination
  return answers.some(isNotTheEvents) ? faults + 1 : faults
}

/**
 * A text as the database takes it: at most 2,000 characters, none of them U+0000 or half a surrogate pair, which PostgreSQL
 * refuses together with the whole settlement.
 */
export function storableText(text: string): string {
  return text
    .slice(0, ERROR_TEXT_CHARACTERS)
    .replaceAll('\u0000', '')
    .replace(/\p{Surrogate}/gu, '\uFFFD')
}

interface Refusal {
  readonly code: string
  readonly reason: string
}

export const UNKNOWN: Refusal = {
  code: 'UnknownEntry',
  reason: 'the answer names this entry neither among the accepted nor among the refused; it may have arrived',
}

/** Whether an answer says something of the destination. */
export function isNotTheEvents(answer: MessageAnswer | undefined): boolean {
  return answer !== undefined && answer.kind !== 'unsent' && !(answer.kind === 'refused' && answer.fault === 'event')
}

function unchargedCapMs(policy: RetryPolicy): number {
  return Math.min(policy.capMs, UNCHARGED_CAP_MS)
}

function decideTransient(
  refusal: Refusal,
  attempt: Attempt,
  circumstances: Circumstances,
  policy: RetryPolicy,
  random: Pick<Random, 'next'>,
): Decision {
  if (!circumstances.neighbourAccepted) return retryUncharged(refusal, attempt, circumstances, policy, random)
  const charged = attempt.event.attempts + 1
  if (charged >= policy.maxAttempts) {
    const reason = `gave up after ${charged} charged attempts (allowed: ${policy.maxAttempts}); the last one: ${refusal.code}: ${refusal.reason}`
    return fail({ code: refusal.code, reason }, attempt, 'charged')
  }
  return {
    kind: 'retry',
    delayMs: retryDelayMs(charged, policy, random),
    charge: true,
    destination: attempt.destination,
    errorCode: storableText(refusal.code),
    error: storableText(refusal.reason),
  }
}

function retryUncharged(
  refusal: Refusal,
  attempt: Attempt,
  circumstances: Circumstances,
  policy: RetryPolicy,
  random: Pick<Random, 'next'>,
): Decision {
  const delays = { baseMs: policy.baseMs, capMs: unchargedCapMs(policy) }
  return {
    kind: 'retry',
    delayMs: retryDelayMs(circumstances.consecutiveFaults, delays, random),
    charge: false,
    destination: attempt.destination,
    errorCode: storableText(refusal.code),
    error: storableText(refusal.reason),
  }
}

function fail(refusal: Refusal, attempt: Attempt, charge: 'charged' | 'uncharged'): Decision {
  return {
    kind: 'failed',
    charge: charge === 'charged',
    block: attempt.event.orderingKey !== null && attempt.onFailure === 'block',
    destination: attempt.destination,
    errorCode: storableText(refusal.code),
    error: storableText(refusal.reason),
  }
}
