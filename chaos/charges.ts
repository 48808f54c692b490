import { MISSING_CODE, type EventAnswer } from './answers.js'
import type { SettledEvent } from './evidence.js'
import { blameOf } from './faults.js'

/** What an answer means for the attempts of its event. `either`: it is not known which answer the relay settled. */
type Charge = 'charged' | 'free' | 'either'

/** Delays between the injector's clock and the database's, which are the same computer's. */
const slackMs = 5

/**
 * Settlements whose charge is not what the destinations' answers allow: an attempt was charged although no answer since the
 * last settlement may be, or was not although every answer that can be meant must be.
 *
 * Charged is what the event may have caused: refused or missing beside an accepted entry of the same request, or refused for
 * what it is. A request that failed whole, or whose answer was lost, charges nobody.
 */
export function wronglyCharged(settled: readonly SettledEvent[], answers: readonly EventAnswer[]): readonly string[] {
  const byEvent = new Map<string, EventAnswer[]>()
  for (const answer of answers) {
    if (answer.kind === 'accepted') continue
    const own = byEvent.get(answer.eventId)
    if (own === undefined) byEvent.set(answer.eventId, [answer])
    else own.push(answer)
  }
  const lastMs = new Map<string, number>()
  return settled.flatMap(({ id, atMs, charged, code, unsent }) => {
    const sinceMs = lastMs.get(id) ?? Number.NEGATIVE_INFINITY
    lastMs.set(id, atMs)
    const since = (byEvent.get(id) ?? []).filter((answer) => answer.atMs > sinceMs - slackMs && answer.atMs <= atMs + slackMs)
    const due = chargeOf(since.filter((answer) => answer.code === code))
    const is = charged > 0 ? 'charged' : 'free'
    if (charged <= 1 && (due === 'either' || due === is || (unsent && is === 'free'))) return []
    return [
      `event ${id} was ${is === 'free' ? 'not charged' : `charged ${charged}`} for ${code ?? 'no code'}; its answers say ${due}`,
    ]
  })
}

function chargeOf(answers: readonly EventAnswer[]): Charge {
  const due = new Set(answers.map(dueFor))
  if (due.size > 1) return 'either'
  return [...due][0] ?? 'free'
}

function dueFor({ kind, code, besideAccepted }: EventAnswer): Charge {
  if (kind === 'missing' || code === MISSING_CODE) return besideAccepted ? 'charged' : 'free'
  const blame = blameOf[code ?? '']
  if (blame === 'event') return 'charged'
  return blame === 'transient' && besideAccepted ? 'charged' : 'free'
}
