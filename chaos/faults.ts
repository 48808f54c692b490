import type { FaultSetting } from '../src/local/stack.js'
import type { Dice } from './random.js'
import type { Scenario } from './scenarios.js'

type Rule = FaultSetting['rules'][number]
type Fault = Rule['fault']

/** Which faults are in force from a moment on. */
export interface FaultPhase {
  readonly atMs: number
  readonly seed: number
  readonly rules: readonly Rule[]
}

/** Whom an injected error of an entry blames: only for `transient` does it matter whether a neighbour was accepted. */
export type Blame = 'transient' | 'event' | 'destination'

/** Every code that the rig injects for an entry. */
export const blameOf: Readonly<Record<string, Blame>> = {
  InternalError: 'transient',
  InternalFailure: 'transient',
  InvalidMessageContents: 'event',
  InvalidParameter: 'event',
  MalformedDetail: 'event',
  RequestThrottled: 'destination',
  Throttled: 'destination',
  ThrottlingException: 'destination',
}

interface Sink {
  readonly service: 'sqs' | 'sns' | 'events'
  readonly operation: string
  readonly destinations: readonly string[]
  readonly codes: Readonly<Record<Blame, string>>
  readonly unavailable: Fault
  readonly configuration: readonly Fault[]
}

const error = (name: string, status: number): Fault => ({ kind: 'error', name, status })

const sinks: readonly Sink[] = [
  {
    service: 'sqs',
    operation: 'SendMessageBatch',
    destinations: ['queue', 'fifo'],
    codes: { transient: 'InternalError', event: 'InvalidMessageContents', destination: 'RequestThrottled' },
    unavailable: error('ServiceUnavailable', 503),
    configuration: [
      error('AccessDenied', 403),
      error('AWS.SimpleQueueService.NonExistentQueue', 400),
      error('KmsAccessDenied', 400),
    ],
  },
  {
    service: 'sns',
    operation: 'PublishBatch',
    destinations: ['topic'],
    codes: { transient: 'InternalError', event: 'InvalidParameter', destination: 'Throttled' },
    unavailable: error('InternalError', 500),
    configuration: [error('AuthorizationError', 403), error('NotFound', 404), error('KMSDisabled', 400)],
  },
  {
    service: 'events',
    operation: 'PutEvents',
    destinations: ['bus'],
    codes: { transient: 'InternalFailure', event: 'MalformedDetail', destination: 'ThrottlingException' },
    unavailable: error('InternalException', 500),
    configuration: [error('AccessDeniedException', 400), error('ResourceNotFoundException', 400)],
  },
]

/** Longer than the relays of the rig wait for an answer. */
const hangingMs = 3_000

/** Phases of 2 to 5 s, each with faults of its own, from the start to the end of a run. */
export function faultPhases(dice: Dice, seconds: number, { faults }: Scenario): readonly FaultPhase[] {
  const phases: FaultPhase[] = []
  for (let atMs = 0; atMs < seconds * 1000; atMs += dice.between(2_000, 5_000)) {
    // thrown in any case: a scenario leaves parts out, and the others stay as they are
    const rules = {
      destinations: [...outage(dice), ...sinks.flatMap((sink) => sinkRules(sink, dice))],
      database: databaseRules(dice),
    }
    phases.push({ atMs, seed: dice.integer(0, 4_294_967_295), rules: faults.flatMap((part) => rules[part]) })
  }
  return phases
}

/** In every third phase one destination is down, in one of the ways in which they are. */
function outage(dice: Dice): readonly Rule[] {
  const sink = dice.pick(sinks)
  const destination = dice.pick(sink.destinations)
  const { unavailable, configuration, codes } = sink
  const whole = dice.pick<Fault>([
    unavailable,
    dice.pick(configuration),
    { kind: 'throttle' },
    { kind: 'reset' },
    { kind: 'drop-reply' },
    { kind: 'latency', ms: hangingMs },
    { kind: 'entry-error', code: codes.transient },
  ])
  const isDown = dice.chance(0.35)
  return isDown ? [{ service: sink.service, operation: sink.operation, destination, fault: whole }] : []
}

function sinkRules({ service, operation, codes, unavailable, configuration }: Sink, dice: Dice): readonly Rule[] {
  const on = (rate: number, fault: Fault): Rule => ({ service, operation, rate: rate * dice.between(0.5, 1.5), fault })
  return [
    on(0.03, { kind: 'latency', ms: dice.integer(20, 400) }),
    on(0.004, { kind: 'latency', ms: hangingMs }),
    on(0.01, { kind: 'drop-reply' }),
    on(0.01, { kind: 'reset' }),
    on(0.01, { kind: 'throttle' }),
    on(0.01, unavailable),
    on(0.002, dice.pick(configuration)),
    on(0.04, { kind: 'entry-error', code: codes.transient }),
    on(0.003, { kind: 'entry-error', code: codes.event, senderFault: true }),
    on(0.005, { kind: 'entry-error', code: codes.destination }),
    on(0.01, { kind: 'entry-missing' }),
  ]
}

function databaseRules(dice: Dice): readonly Rule[] {
  const on = (rate: number, fault: Fault, where: Pick<Rule, 'match' | 'operation'> = {}): Rule => ({
    service: 'rds-data',
    rate: rate * dice.between(0.5, 1.5),
    fault,
    ...where,
  })
  const sleeps = dice.chance(0.2)
  const sleepSeconds = dice.between(0.3, 1.5)
  return [
    on(0.02, { kind: 'latency', ms: dice.integer(20, 500) }),
    on(0.01, { kind: 'drop-reply' }),
    on(0.01, { kind: 'reset' }),
    on(0.01, { kind: 'throttle' }),
    on(0.005, error('InternalServerErrorException', 500)),
    on(0.005, error('ServiceUnavailableError', 503)),
    on(0.003, error('DatabaseUnavailableException', 504)),
    on(0.002, error('StatementTimeoutException', 400)),
    on(0.03, { kind: 'drop-reply' }, { match: 'outbox_claim' }),
    on(0.03, { kind: 'drop-reply' }, { match: 'outbox_settle' }),
    on(0.03, { kind: 'drop-reply' }, { match: 'outbox_renew' }),
    on(0.03, { kind: 'drop-reply' }, { operation: 'CommitTransaction' }),
    on(0.02, { kind: 'drop-reply' }, { match: 'outbox_operate' }),
    on(0.02, { kind: 'drop-reply' }, { match: 'outbox_replay' }),
    on(0.02, { kind: 'drop-reply' }, { match: 'outbox_cleanup' }),
    // longer than a lease: it arrives when its shards are somebody else's
    on(0.004, { kind: 'latency', ms: 9_000 }, { match: 'outbox_claim' }),
    on(0.004, { kind: 'latency', ms: 9_000 }, { match: 'outbox_settle' }),
    ...(sleeps ? [{ service: 'rds-data', rate: 0.05, fault: { kind: 'resuming', seconds: sleepSeconds } } satisfies Rule] : []),
  ]
}
