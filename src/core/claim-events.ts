import { deadlineAfter, earlier } from './deadline.js'
import { SqlError } from './errors.js'
import type { Lease } from './lease.js'
import type { PassContext } from './pass-context.js'
import type { ClaimAnswer } from './ports.js'
import { suspectLeaseSeconds } from './suspect.js'

/**
 * Claims for one token, as many rows as answers have shown to fit.
 *
 * @param inFlight - ids that the batch has in hand already; null for its first claim
 * @param takesSuspects - whether the relay has nothing else in hand
 * @throws SqlError of kind `oversize` if the answer was too large: the next claim asks for half
 */
export async function claimEvents(
  context: PassContext,
  token: string,
  lease: Lease,
  inFlight: readonly string[] | null,
  takesSuspects: boolean,
): Promise<ClaimAnswer> {
  const { store, settings, claimSize, owner, hardDeadline, totals, telemetry, circuits, suspects, clock } = context
  totals.claims += 1
  const askedAtMs = clock.nowMs()
  try {
    const answer = await store.claim(
      {
        token,
        owner,
        maxRows: claimSize.rows,
        maxBytes: settings.claimBytes,
        keyRows: settings.keyRows,
        maxShards: settings.maxShards,
        leaseSeconds: settings.leaseSeconds,
        inFlight,
        suspectLeaseSeconds: takesSuspects ? suspectLeaseSeconds(settings) : null,
      },
      { deadline: earlier(lease, hardDeadline) },
    )
    // an answer that is not full says nothing about the size of a full one, least of all another batch's empty one
    if (answer.events.length >= claimSize.rows) claimSize.wasFine()
    totals.claimed += answer.events.length
    // an empty answer says nothing of suspects, unless it could have brought one
    if (answer.events.length > 0 || takesSuspects) suspects.wait = answer.suspectsWait
    if (answer.circuits !== null) circuits.heed(answer.circuits, askedAtMs)
    return answer
  } catch (error) {
    if (error instanceof SqlError && error.kind === 'oversize') {
      telemetry.metric('OversizeClaims', 1)
      telemetry.log('claim-oversize', { rows: claimSize.rows })
      claimSize.wasTooLarge()
    }
    throw error
  }
}

/** A claim without an answer may have leased shards: they are given back, or run out with the lease. */
export async function releaseUnseen(
  { store, hardDeadline, settings, clock }: PassContext,
  token: string,
  cause: unknown,
): Promise<void> {
  if (cause instanceof SqlError && (cause.kind === 'permanent' || cause.kind === 'not-executed')) return
  try {
    const deadline = earlier(hardDeadline, deadlineAfter(clock, settings.leaseSeconds * 1000))
    await store.settle({ token, events: [], done: null }, { deadline })
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
  }
}
