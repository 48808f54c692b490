import type { Random } from './clock.js'
import { earlier, type Deadline } from './deadline.js'
import type { ClaimedEvent } from './event.js'
import { LEASE_MARGIN_MS, type Lease } from './lease.js'
import type { Outcome } from './outcome.js'
import type { OutboxStore, Telemetry } from './ports.js'
import { UNCHARGED_CAP_MS } from './retry-delays.js'
import { decideUnsendable, storableText, type Attempt, type RetryPolicy } from './retry-policy.js'

// A relay that ends without a word (crash, kill, hang) leaves its leases to run out. What it had in hand are suspects: one of them
// may have ended it. So they are served one at a time, by a relay that has nothing else in hand, and marked as started before.

interface LeaseSettings {
  readonly leaseSeconds: number
  readonly requestTimeoutMs: number
}

interface StartContext {
  readonly store: Pick<OutboxStore, 'start'>
  readonly settings: LeaseSettings
  readonly hardDeadline: Deadline
  readonly telemetry: Telemetry
}

interface FaultContext {
  readonly policy: RetryPolicy
  readonly random: Random
  readonly telemetry: Telemetry
}

/** So many relays that end with one event alone in hand are enough. */
export const CRASHES_THAT_FAIL = 3

/**
 * Whole seconds: short, so that the shard of an event that crashes relays waits little, and long enough for one request, which
 * may begin until a third of it is over (then it is renewed). At most the ordinary lease.
 *
 * @example
 * suspectLeaseSeconds({ leaseSeconds: 30, requestTimeoutMs: 5000 }) // 11
 */
export function suspectLeaseSeconds({ leaseSeconds, requestTimeoutMs }: LeaseSettings): number {
  return Math.min(leaseSeconds, Math.ceil((1.5 * (requestTimeoutMs + LEASE_MARGIN_MS)) / 1000))
}

/**
 * Marks a suspect as started before it is so much as encoded: its relay may end at any moment from then on.
 *
 * @returns false: it is not leased any more
 */
export async function startSuspect(context: StartContext, token: string, lease: Lease, suspect: ClaimedEvent): Promise<boolean> {
  const { store, settings, hardDeadline, telemetry } = context
  lease.shorten(suspectLeaseSeconds(settings))
  if (lease.remainingMs() <= 0) return false
  if (suspect.starts > 0) {
    const { id: eventId, eventType, orderingKey, starts: crashes, reclaimedFrom: lastRelay } = suspect
    telemetry.log('event-suspected', { eventId, eventType, orderingKey, crashes, lastRelay })
    telemetry.flush()
  }
  // it will not be sent again
  if (suspect.starts >= CRASHES_THAT_FAIL) return true
  return store.start(token, suspect.id, { deadline: earlier(lease, hardDeadline) })
}

/** Failed, not charged: no destination ever refused it. */
export function decideCrashed(
  attempt: Attempt & { readonly event: Pick<ClaimedEvent, 'starts' | 'reclaimedFrom' | 'payloadBytes'> },
): Outcome {
  const { starts, reclaimedFrom, payloadBytes } = attempt.event
  const last = reclaimedFrom === null ? '' : ` (the last one: ${reclaimedFrom})`
  const reason =
    `${starts} relays ended, each while it had this event and no other in hand${last}: look at what they logged last, and at the event ` +
    `(${payloadBytes} bytes of payload). Discard it, or redrive it once the relay can bear it`
  return decideUnsendable({ code: 'CrashedRelays', reason }, attempt)
}

/**
 * For an event that this program, or the database, cannot turn into a message, for no reason that the event's destination gave:
 * put off without charge, a minute at most, so that it stops no other, and goes out once the cause is gone.
 */
export function decideFaulty(
  error: unknown,
  destination: string | null,
  { policy, random, telemetry }: FaultContext,
  event: Pick<ClaimedEvent, 'id' | 'eventType'>,
): Outcome {
  const text = storableText(error instanceof Error ? `${error.name}: ${error.message}` : 'unknown')
  telemetry.log('event-fault', { eventId: event.id, eventType: event.eventType, destination, error: text })
  const capMs = Math.min(policy.capMs, UNCHARGED_CAP_MS)
  return {
    kind: 'retry',
    delayMs: Math.floor(random.next() * capMs) + 1,
    charge: false,
    destination,
    errorCode: 'EventFault',
    error: text,
  }
}
