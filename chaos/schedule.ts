import type { OperatorAction } from '../src/store/postgres/operate.js'
import { faultPhases, type FaultPhase } from './faults.js'
import type { ChaosOptions } from './options.js'
import { diceOf, type Dice } from './random.js'
import { scenarios } from './scenarios.js'

/** Something that happens to a process. `relay` is the number of a relay, from 0. */
export type Blow =
  /** SIGKILL. */
  | { readonly kind: 'kill'; readonly atMs: number; readonly relay: number }
  /** SIGSTOP, and SIGCONT so much later: mostly past the lease. */
  | { readonly kind: 'freeze'; readonly atMs: number; readonly relay: number; readonly ms: number }
  /** SIGSTOP until its invocation times out. */
  | { readonly kind: 'timeout'; readonly atMs: number; readonly relay: number }
  /** New processes for all relays at once; the old ones finish what they are at. */
  | { readonly kind: 'deploy'; readonly atMs: number }
  /** All relays are killed at once and replaced. */
  | { readonly kind: 'kill-all'; readonly atMs: number }
  /** PostgreSQL is killed, and started again so much later. */
  | { readonly kind: 'crash-database'; readonly atMs: number; readonly ms: number }

export interface OperatorCall {
  readonly atMs: number
  readonly action: OperatorAction
  readonly maxRows: number
  readonly destination: string | undefined
}

/** All that happens from outside, but what is written. */
export interface Schedule {
  readonly phases: readonly FaultPhase[]
  readonly blows: readonly Blow[]
  readonly operators: readonly OperatorCall[]
  /** Milliseconds by which each relay's clock is wrong; 0: it is right. */
  readonly clockShiftsMs: readonly number[]
}

export const destinations = ['queue', 'fifo', 'topic', 'bus'] as const

/**
 * Seconds between two of a kind, on average; each comes once at least. Much more often, and a machine does little else than start
 * processes and recover databases.
 */
const every = { kill: 4, freeze: 6, timeout: 20, deploy: 60, 'kill-all': 60, 'crash-database': 30, operator: 3 } as const
const hourMs = 3_600_000

/**
 * What happens when, from the seed alone: the same seed, seconds and numbers of relays and writers give the same schedule in
 * every run, and a scenario only leaves parts of it out.
 */
export function scheduleOf({ seed, seconds, relays, scenario: name }: Omit<ChaosOptions, 'output' | 'logFile'>): Schedule {
  const scenario = scenarios[name]
  const times = (kind: keyof typeof every, dice: Dice): readonly number[] => {
    const count = Math.max(1, Math.round(seconds / every[kind]))
    // one in each of as many equal parts: never all in the last second
    return Array.from({ length: count }, (_, index) => ((index + dice.next()) / count) * seconds * 1000)
  }
  const blowsOf = (kind: Blow['kind'], make: (atMs: number, dice: Dice) => Blow): readonly Blow[] => {
    const dice = diceOf(seed, kind)
    return times(kind, dice).map((atMs) => make(atMs, dice))
  }
  const relayOf = (dice: Dice) => dice.integer(0, relays - 1)
  const processes = [
    ...blowsOf('kill', (atMs, dice) => ({ kind: 'kill', atMs, relay: relayOf(dice) })),
    ...blowsOf('freeze', (atMs, dice) => ({ kind: 'freeze', atMs, relay: relayOf(dice), ms: dice.between(3_000, 14_000) })),
    ...blowsOf('timeout', (atMs, dice) => ({ kind: 'timeout', atMs, relay: relayOf(dice) })),
    ...blowsOf('deploy', (atMs) => ({ kind: 'deploy', atMs })),
    ...blowsOf('kill-all', (atMs) => ({ kind: 'kill-all', atMs })),
  ]
  const crashes = blowsOf('crash-database', (atMs, dice) => ({ kind: 'crash-database', atMs, ms: dice.between(100, 1_500) }))
  const operatorDice = diceOf(seed, 'operator')
  const operators = times('operator', operatorDice).map((atMs) => operatorCall(atMs, operatorDice))
  const clockDice = diceOf(seed, 'clocks')
  return {
    phases: scenario.faults.length > 0 ? faultPhases(diceOf(seed, 'faults'), seconds, scenario) : [],
    blows: [...(scenario.processes ? processes : []), ...(scenario.databaseCrashes ? crashes : [])].sort(
      (a, b) => a.atMs - b.atMs,
    ),
    operators: scenario.operators ? operators : [],
    clockShiftsMs: Array.from({ length: relays }, () => {
      const shiftMs = Math.round(clockDice.between(-9, 9) * hourMs)
      return clockDice.chance(0.4) ? shiftMs : 0
    }),
  }
}

function operatorCall(atMs: number, dice: Dice): OperatorCall {
  const action = dice.weighted({ redrive: 4, discard: 1, release: 1, replay: 4 })
  const destination = dice.pick([...destinations, undefined])
  return { atMs, action, destination, maxRows: action === 'replay' ? dice.integer(1, 20) : dice.integer(1, 50) }
}
