import type { ClaimedEvent } from './event.js'
import type { PassContext } from './pass-context.js'
import type { SettleAnswer, SettledEvent, SettleVerdict } from './settlement.js'

type Report = Pick<PassContext, 'telemetry' | 'totals' | 'clock'>

/**
 * Counts and logs what a settlement recorded. Where shards were lost it is not known which events they held; then no more is
 * counted than the database changed, so metrics never run ahead of the receipts.
 */
export function reportSettled(
  outcomes: readonly SettledEvent[],
  answer: SettleAnswer,
  verdict: SettleVerdict,
  event: (id: string) => ClaimedEvent | undefined,
  { telemetry, totals, clock }: Report,
): void {
  const all = verdict.kind === 'recorded'
  const left = {
    published: all ? Number.POSITIVE_INFINITY : answer.published,
    retry: all ? Number.POSITIVE_INFINITY : answer.retried,
    hold: all ? Number.POSITIVE_INFINITY : answer.held,
    failed: all ? Number.POSITIVE_INFINITY : answer.failed,
  }
  const unrouted = new Map<string, { events: number; reason: string }>()

  for (const { id, outcome } of outcomes) {
    if (left[outcome.kind] <= 0) continue
    left[outcome.kind] -= 1
    const settled = event(id)
    // here, not when it is taken up: it may be given back or put aside unsent, and taken up again
    const isUnsent = outcome.kind === 'hold' && outcome.errorCode === null
    if (settled !== undefined && settled.starts > 0 && !isUnsent) telemetry.metric('CrashedRelays', settled.starts)
    const dimensions = outcome.destination === null ? {} : { destination: outcome.destination }
    switch (outcome.kind) {
      case 'published':
        totals.published += 1
        telemetry.metric('Published', 1, dimensions)
        if (settled !== undefined) telemetry.metric('DeliveryLatency', Math.max(0, clock.epochMs() - settled.dueAtMs), dimensions)
        break
      case 'retry':
        if (outcome.errorCode === 'NoRoute' || outcome.errorCode === 'UnknownDestination') {
          totals.unrouted += 1
          telemetry.metric('Unrouted', 1)
          const seen = unrouted.get(outcome.error)
          unrouted.set(outcome.error, { events: (seen?.events ?? 0) + 1, reason: outcome.error })
        } else {
          totals.retried += 1
          telemetry.metric('Retried', 1, dimensions)
        }
        break
      case 'hold':
        totals.held += 1
        break
      case 'failed':
        totals.failed += 1
        telemetry.metric('Failed', 1, dimensions)
        telemetry.log('event-failed', {
          eventId: id,
          eventType: settled?.eventType ?? null,
          orderingKey: settled?.orderingKey ?? null,
          destination: outcome.destination,
          errorCode: outcome.errorCode,
          error: outcome.error,
          blocksKey: outcome.block,
        })
        break
    }
  }
  for (const { events, reason } of unrouted.values()) telemetry.log('event-unrouted', { events, reason })
}
