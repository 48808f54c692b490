import type { Decision, Decisions, Entry } from '../front/entry-codec.js'
import type { ServiceFault, ServiceName } from '../front/protocol.js'
import { seededRandom } from './random.js'
import type { Fault, FaultReport, FaultRule, FaultSetting } from './rules.js'
import { ENTRY_FAULTS, faultsSchema } from './rules.js'

/** What the rules look at. */
export interface FaultSubject {
  readonly service: ServiceName
  readonly operation: string
  readonly entries: readonly Entry[]
  /** Which entries may be taken out: none, the single one (which cannot be missing from an answer), or any. */
  readonly takes: 'none' | 'single' | 'batch'
}

/** What happens to one request. */
export interface FaultPlan {
  /** Waited before anything else. */
  readonly latencyMs: number
  /** The request has no effect: it is answered with this error, or its connection is reset. */
  readonly refusal: ServiceFault | 'reset' | undefined
  readonly decisions: Decisions
  /** The request has its effect, and its answer is lost. */
  readonly dropReply: boolean
}

interface ActiveRule {
  readonly rule: FaultRule
  readonly dice: () => number
  hits: number
  /** Of a `resuming` rule: when the database is awake again. */
  awakeAtMs: number | undefined
}

const THROTTLES: Readonly<Record<ServiceName, { readonly name: string; readonly status: number }>> = {
  sqs: { name: 'RequestThrottled', status: 403 },
  sns: { name: 'Throttled', status: 429 },
  events: { name: 'ThrottlingException', status: 400 },
  'rds-data': { name: 'ThrottlingException', status: 400 },
  secretsmanager: { name: 'ThrottlingException', status: 400 },
  sts: { name: 'Throttling', status: 400 },
}

/** The fault rules in force, and what they make of each request. */
export class Faults {
  #seed = 1
  #rules: readonly ActiveRule[] = []
  readonly #resourceOf: (destination: string) => string
  readonly #nowMs: () => number

  /** `resourceOf`: the queue, topic or bus behind a destination's name; any other name as it is. */
  constructor(resourceOf: (destination: string) => string = (name) => name, nowMs: () => number = () => performance.now()) {
    this.#resourceOf = resourceOf
    this.#nowMs = nowMs
  }

  /**
   * Replaces all rules; hits count from 0, dice start anew.
   *
   * @throws ZodError if a rule is not valid.
   * @example
   * faults.set({ seed: 7, rules: [{ service: 'sqs', rate: 0.3, fault: { kind: 'throttle' } }] })
   */
  set(setting: FaultSetting): void {
    const { seed, rules } = faultsSchema.parse(setting)
    this.#seed = seed
    // dice of its own for each rule: what one rule does must not move another
    this.#rules = rules.map((rule, index) => ({ rule, dice: seededRandom(seed + index * 7919), hits: 0, awakeAtMs: undefined }))
  }

  get(): FaultReport {
    return { seed: this.#seed, rules: this.#rules.map(({ rule, hits }) => ({ ...rule, hits })) }
  }

  clear(): void {
    this.#rules = []
  }

  /** What happens to this request: rules in order, faults of the request before faults of its entries. */
  plan(subject: FaultSubject): FaultPlan {
    const active = this.#rules.filter(
      ({ rule }) => rule.service === subject.service && (rule.operation ?? subject.operation) === subject.operation,
    )
    let latencyMs = 0
    let dropReply = false
    for (const state of active) {
      const { fault } = state.rule
      if (ENTRY_FAULTS.includes(fault.kind) || this.#fitting(state.rule, subject.entries).length === 0) continue
      if (fault.kind === 'resuming' ? !this.#isResuming(state, fault.seconds) : !strikes(state)) continue
      if (fault.kind === 'latency') latencyMs += fault.ms
      else if (fault.kind === 'drop-reply') dropReply = true
      else return { latencyMs, refusal: refusalOf(fault, subject.service), decisions: new Map(), dropReply: false }
    }
    return { latencyMs, refusal: undefined, decisions: this.#decide(active, subject), dropReply }
  }

  #decide(active: readonly ActiveRule[], subject: FaultSubject): Decisions {
    const decisions = new Map<number, Decision>()
    for (const state of active) {
      const { fault } = state.rule
      const decision = decisionOf(fault)
      if (decision === undefined || subject.takes === 'none') continue
      if (decision.kind === 'missing' && subject.takes === 'single') continue
      for (const index of this.#fitting(state.rule, subject.entries)) {
        if (!decisions.has(index) && strikes(state)) decisions.set(index, decision)
      }
    }
    return decisions
  }

  #fitting(rule: FaultRule, entries: readonly Entry[]): readonly number[] {
    const resource = rule.destination === undefined ? undefined : this.#resourceOf(rule.destination)
    return entries.flatMap((entry, index) => {
      const fits = (resource ?? entry.resource) === entry.resource && entry.text.includes(rule.match ?? '')
      return fits ? [index] : []
    })
  }

  /** The first request that fits wakes the database: it and all until then are refused. `times`: such sleeps, default 1. */
  #isResuming(state: ActiveRule, seconds: number): boolean {
    if (state.awakeAtMs === undefined) {
      if (!strikes(state, state.rule.times ?? 1)) return false
      state.awakeAtMs = this.#nowMs() + seconds * 1000
    }
    if (this.#nowMs() < state.awakeAtMs) return true
    const sleepsLeft = state.hits < (state.rule.times ?? 1)
    if (sleepsLeft) state.awakeAtMs = undefined
    return false
  }
}

function strikes(state: ActiveRule, times = state.rule.times ?? Infinity): boolean {
  if (state.hits >= times || state.dice() >= state.rule.rate) return false
  state.hits += 1
  return true
}

function refusalOf(fault: Fault, service: ServiceName): ServiceFault | 'reset' {
  if (fault.kind === 'error') return { name: fault.name, status: fault.status, message: fault.message ?? 'A fault rule says so.' }
  if (fault.kind === 'throttle') return { ...THROTTLES[service], message: 'Rate exceeded' }
  if (fault.kind === 'resuming') {
    const message = 'The Aurora DB instance is resuming after being auto-paused. Please wait a few seconds and try again.'
    return { name: 'DatabaseResumingException', status: 400, message }
  }
  return 'reset'
}

function decisionOf(fault: Fault): Decision | undefined {
  if (fault.kind === 'entry-error') {
    const { code, senderFault, message = 'A fault rule says so.' } = fault
    return { kind: 'error', code, senderFault, message }
  }
  if (fault.kind === 'entry-missing') return { kind: 'missing' }
  return fault.kind === 'swallow' ? { kind: 'swallow' } : undefined
}
