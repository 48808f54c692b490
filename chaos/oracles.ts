import { wronglyCharged } from './charges.js'
import type { CommittedEvent, Evidence } from './evidence.js'
import { blameOf } from './faults.js'

/** The object that a run prints, but for `seed` and `seconds`. */
export interface Figures {
  /** Events whose transaction was committed. */
  readonly committed: number
  /** Of them, those whose publication was recorded. */
  readonly published: number
  /** Messages beyond the first of each event; those of replays are among them. */
  readonly duplicates: number
  /** Committed events that were neither delivered, nor failed, nor discarded; or recorded as published and not delivered. */
  readonly lost: number
  /** First deliveries that came before one of an event of the same key that was committed earlier. */
  readonly orderViolations: number
  /** Queue rows that are neither delivered nor failed after healing, and shards that are still leased. */
  readonly stuck: number
  /** Attempts charged. */
  readonly charged: number
  /** Settlements whose charge the answers of the destinations do not allow. */
  readonly wronglyCharged: number
  /** Events that have failed at the end. */
  readonly failed: number
  readonly faultsInjected: number
}

export interface Verdict {
  readonly figures: Figures
  /** One line for each thing that must not be; empty if the run is good. */
  readonly violations: readonly string[]
}

/** A run of a few seconds has about a hundred faults, and may have none that is an event's own. */
const FAULTS_THAT_CHARGE = 500
/** One may find that others were faster, or that its minute of repeats is over. */
const ACTS_THAT_SHOW = 3

/** Judges a run. Pure: the same evidence has the same verdict. */
export function judge(evidence: Evidence): Verdict {
  const { committed, delivered, failed, discarded, recorded, settled, answers, left, scenario } = evidence
  const lost = lostEvents(evidence)
  const disordered = orderViolations(evidence)
  const wrong = wronglyCharged(settled, answers)
  const charged = settled.reduce((sum, one) => sum + one.charged, 0)
  const stuck = Object.entries(left).filter(([, count]) => count > 0)
  const figures: Figures = {
    committed: committed.length,
    published: committed.filter(({ id }) => recorded.has(id)).length,
    duplicates: [...delivered.values()].reduce((sum, { messages }) => sum + messages - 1, 0),
    lost: lost.length,
    orderViolations: disordered.length,
    stuck: stuck.reduce((sum, [, count]) => sum + count, 0),
    charged,
    wronglyCharged: wrong.length,
    failed: failed.size,
    faultsInjected: evidence.faultsInjected,
  }
  const violations = [
    ...(committed.length === 0 ? ['nothing was committed'] : []),
    ...lost.map((id) => `lost: event ${id} (${discarded.has(id) ? 'discarded' : 'neither failed nor discarded'})`),
    ...disordered,
    ...stuck.map(([what, count]) => `stuck: ${count} ${what}`),
    ...wrong,
    ...(scenario.charges && charged === 0 && evidence.faultsInjected >= FAULTS_THAT_CHARGE ? ['no attempt was charged'] : []),
    ...strangers(evidence),
    ...brokenPromises(evidence),
    ...notOnce(evidence),
    ...failedWithoutReason(evidence),
    ...idleOperators(evidence),
    ...idleCleanup(evidence),
    ...evidence.gauges
      .filter(({ gauge, least, most }) => !(gauge >= least && gauge <= most))
      .map(
        ({ name, gauge, least, most }) =>
          `gauge ${name} is ${gauge}, the tables say ${least === most ? least : `${least} to ${most}`}`,
      ),
    ...evidence.counts
      .filter(({ counted, happened }) => counted > happened)
      .map(({ name, counted, happened }) => `metric ${name} adds up to ${counted}, but it happened ${happened} times`),
  ]
  return { figures, violations }
}

function lostEvents({ committed, delivered, failed, discarded, recorded }: Evidence): readonly string[] {
  return committed.flatMap(({ id }) => {
    if (delivered.has(id)) return []
    return recorded.has(id) || !(failed.has(id) || discarded.has(id)) ? [id] : []
  })
}

/**
 * First deliveries of a key that came before that of an event committed earlier. Not held to it: scheduled events; those that an
 * operator released, or whose route lets the key go on, after they failed. Replays come after a first delivery.
 */
function orderViolations({ committed, delivered, released, settled }: Evidence): readonly string[] {
  const everFailed = new Set(settled.filter(({ lane }) => lane === 3).map(({ id }) => id))
  const isBound = ({ id, key, scheduled, skips }: CommittedEvent) =>
    key !== null && !scheduled && !released.has(id) && !(skips && everFailed.has(id)) && delivered.has(id)
  const inOrder = committed.filter(isBound).sort((a, b) => a.committedUs - b.committedUs || a.nr - b.nr)
  const latest = new Map<string, { readonly id: string; readonly sentMs: number }>()
  return inOrder.flatMap(({ id, key }) => {
    const sentMs = delivered.get(id)?.firstSentMs ?? 0
    const before = latest.get(key ?? '')
    if (before !== undefined && sentMs < before.sentMs) {
      return [`order: event ${id} of key ${key ?? ''} came ${before.sentMs - sentMs} ms before the earlier ${before.id}`]
    }
    latest.set(key ?? '', { id, sentMs })
    return []
  })
}

/** Nothing that was rolled back, or that nobody wrote, was seen. */
function strangers({ committed, delivered, recorded, applied }: Evidence): readonly string[] {
  const known = new Set(committed.map(({ id }) => id))
  const seen = new Set([...delivered.keys(), ...recorded, ...applied.keys()])
  return [...seen].filter((id) => !known.has(id)).map((id) => `rolled back, but seen: event ${id}`)
}

/** What a writer was told about its transaction is so. */
function brokenPromises({ committed, told }: Evidence): readonly string[] {
  const known = new Map(committed.map(({ id, committedUs }) => [id, committedUs]))
  return [
    ...[...told.committed]
      .filter((id) => !known.has(id))
      .map((id) => `the writer was told that event ${id} is committed; it is not`),
    ...[...told.rolledBack]
      .filter((id) => known.has(id))
      .map(
        (id) =>
          `the writer was told that event ${id} is not committed; it is, since ${new Date(known.get(id)! / 1000).toISOString()}`,
      ),
  ]
}

/** Each delivered event has its effect once. */
function notOnce({ delivered, applied }: Evidence): readonly string[] {
  return [...delivered.keys(), ...[...applied.keys()].filter((id) => !delivered.has(id))].flatMap((id) => {
    const times = delivered.has(id) ? (applied.get(id) ?? 0) : -1
    if (times === 1) return []
    return [`inbox: event ${id} ${times < 0 ? 'took effect without a delivery' : `took effect ${times} times`}`]
  })
}

/** Acts that fail where nothing excuses it, or change nothing time after time although there was something to change. */
function idleOperators({ acts }: Evidence): readonly string[] {
  const failures = acts.flatMap(({ action, failure }) => (failure === null ? [] : [`operator: ${action} failed: ${failure}`]))
  const idle = [...new Set(acts.map(({ action }) => action))].flatMap((action) => {
    const able = acts.filter((act) => act.action === action && act.chances > 0)
    const isIdle = able.length >= ACTS_THAT_SHOW && able.every(({ events }) => events === null || events === 0)
    return isIdle ? [`operator: ${able.length} acts "${action}" changed nothing`] : []
  })
  return [...failures, ...idle]
}

function idleCleanup({ seconds, retentionSeconds, counts }: Evidence): readonly string[] {
  const deleted = counts.find(({ name }) => name === 'EventsDeleted')?.happened ?? 0
  return seconds >= 2 * retentionSeconds && deleted === 0 ? [`cleanup deleted nothing in ${seconds} s`] : []
}

/** What a relay records when it never sends an event because it never can. */
const UNSENDABLE = /^(TooLarge|PayloadTooLarge|MessageTooLarge)/

function failedWithoutReason({ failed, settled, answers, maxAttempts, deaths, scenario }: Evidence): readonly string[] {
  const refusedForItself = new Set(answers.filter(({ code }) => blameOf[code ?? ''] === 'event').map(({ eventId }) => eventId))
  // also of those that were redriven since: a crash must never be found where none was
  const failures = settled.filter(({ lane }) => lane === 3)
  const reasons = failures.flatMap(({ id, code, attempts, charged, starts }) => {
    if (charged === 0 && UNSENDABLE.test(code ?? '')) return []
    if (refusedForItself.has(id) && blameOf[code ?? ''] === 'event') return []
    if (charged > 0 && attempts >= maxAttempts) return []
    // (the relays that end when a run heals have had no time for three)
    if (scenario.processes && starts >= 3 && deaths >= 3) return []
    return [`failed without a reason: event ${id}, ${code ?? 'no code'}, ${attempts} attempts, ${starts} starts`]
  })
  const known = new Set(failures.map(({ id }) => id))
  return [...reasons, ...[...failed].filter((id) => !known.has(id)).map((id) => `failed, and nobody failed it: event ${id}`)]
}
