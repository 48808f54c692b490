import { Annotations, Duration, Size, Stack, Token, TokenComparison } from 'aws-cdk-lib'
import type { Alarm } from 'aws-cdk-lib/aws-cloudwatch'
import { type IEventBus, Rule } from 'aws-cdk-lib/aws-events'
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets'
import type { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { IFunction, Tracing } from 'aws-cdk-lib/aws-lambda'
import type { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { Schedule, ScheduleExpression } from 'aws-cdk-lib/aws-scheduler'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import type { Construct, IDependable } from 'constructs'
import { canarySettings, type databaseSettings, relaySettings } from '../src/config/settings.js'
import type { SettingValues } from '../src/config/setting.js'
import { canaryPattern, type CanaryPattern } from '../src/core/canary.js'
import { ConfigurationError } from '../src/core/errors.js'
import type { OutboxDestination } from './destination.js'
import { handlerEnvironment } from './environment.js'
import { createCanaryAlarm } from './monitoring/alarms.js'
import { show } from './problem.js'
import { RelayFunction } from './relay-function.js'
import { tick } from './schedules.js'

export interface CanaryProps {
  readonly installation: string
  /** Default: that of the relay's settings. */
  readonly source: string | undefined
  /** Where the outbox is, in the words of the handlers' settings. */
  readonly where: Partial<SettingValues<typeof databaseSettings>>
  /** What its function needs to insert. */
  readonly statements: readonly PolicyStatement[]
  readonly logRetention: RetentionDays
  readonly tracing: Tracing | undefined
  readonly expression: ScheduleExpression
  /** The time between two ticks of that. */
  readonly period: Duration
  /** How long an event may be on its way. */
  readonly age: Duration
  readonly topic: ITopic
  /** Default: its path in the package. */
  readonly runbookUrl: string | undefined
  /** What must be there before an event can be written. */
  readonly after: readonly IDependable[]
}

/**
 * A function that sends test events through the outbox to buses of this account and measures their return, for each bus the
 * rule that brings them back, and the alarm. Nothing of it is there before the first bus is.
 */
export class Canary {
  /** Destination name -> alarm. */
  readonly alarms = new Map<string, Alarm>()
  #made: { readonly canary: RelayFunction; readonly schedule: Schedule } | undefined

  constructor(
    private readonly scope: Construct,
    private readonly props: CanaryProps,
  ) {}

  get function(): IFunction | undefined {
    return this.#made?.canary.function
  }

  /** Watches a destination if it is a bus of this account. Of any other bus nobody here can make a rule: a warning says so. */
  watch(name: string, destination: OutboxDestination): Alarm | undefined {
    const { bus, settings } = destination
    if (bus === undefined || !isOfThisAccount(this.scope, name, bus)) return undefined
    const names = [...this.alarms.keys(), name]
    const environment = handlerEnvironment(Stack.of(this.scope), canarySettings, { ...this.props.where, destinations: names })
    const { canary, schedule } = (this.#made ??= this.#make(environment))
    canary.configure(environment)
    const { installation, source = relaySettings.source.default ?? '', topic, runbookUrl, period, age } = this.props
    const rule = canaryRule(this.scope, name, bus, {
      installation,
      pattern: canaryPattern({ source, installation, destination: name, format: settings.format }),
      function: canary.function,
    })
    const alarm = createCanaryAlarm(this.scope, `CanaryAlarm-${name}`, {
      installation,
      topic,
      runbookUrl,
      destination: name,
      canary,
      period,
      age,
      after: [schedule, rule],
    })
    this.alarms.set(name, alarm)
    return alarm
  }

  #make(environment: Readonly<Record<string, string>>) {
    const { installation, statements, logRetention, tracing, expression, after } = this.props
    const canary = new RelayFunction(this.scope, 'Canary', {
      handler: 'canary',
      description: `Outbox ${installation}: sends test events through the outbox, and measures their return`,
      environment,
      // as the monitor's
      timeout: Duration.seconds(55),
      memory: Size.mebibytes(256),
      statements,
      logRetention,
      tracing,
    })
    const schedule = tick(this.scope, 'CanarySchedule', {
      description: `Outbox ${installation}: canary`,
      expression,
      target: canary.function,
    })
    for (const one of [canary.function, canary.policy, schedule]) one.node.addDependency(...after)
    return { canary, schedule }
  }
}

function isOfThisAccount(scope: Construct, name: string, bus: IEventBus): boolean {
  const { account } = Stack.of(scope)
  const same = Token.compareStrings(bus.env.account, account)
  if (same === TokenComparison.SAME || same === TokenComparison.BOTH_UNRESOLVED) return true
  const whose =
    same === TokenComparison.DIFFERENT
      ? `is a bus of account ${bus.env.account}, and the stack is in ${account}`
      : "is a bus of an account that may not be this stack's (set the stack's env)"
  Annotations.of(scope).addWarningV2(
    'aurora-outbox-relay:canaryOff',
    `destinations.${name} ${whose}: no canary watches it, since a bus's rules are made in its own account. ` +
      'Have its owner watch for events that stop arriving, and set canary to "off" or acknowledge this warning',
  )
  return false
}

/**
 * How often canary events are written: every 5 minutes, or with relay and monitor, so that a cluster may pause in between.
 *
 * @throws ConfigurationError naming `canaryMinutes`, its value and the fix.
 */
export function canaryPeriod(profile: 'continuous' | 'drain', tick: Duration, interval: Duration | undefined): Duration {
  if (profile === 'drain') {
    if (interval === undefined) return tick
    refuse(
      `is ${show(interval.toMinutes({ integral: false }))}, but in profile "drain" the canary shares the tick of ${tick.toMinutes()} minutes, ` +
        'so that the cluster can pause. Leave it out',
    )
  }
  const minutes = interval === undefined ? 5 : interval.toMinutes({ integral: false })
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > 60)
    refuse(`is ${show(minutes)}, but canaries are written every 1 to 60 whole minutes. Set it to one of them`)
  return Duration.minutes(minutes)
}

function refuse(problem: string): never {
  throw new ConfigurationError('canaryMinutes', `canaryMinutes ${problem}`)
}

/**
 * The rule that brings the canaries of one bus back to their function.
 *
 * Neither retries nor a dead-letter queue: a canary that does not come back at once is what the alarm is to tell, and one that
 * comes hours later would tell of an outage that is over.
 */
function canaryRule(
  scope: Construct,
  name: string,
  bus: IEventBus,
  canary: { readonly installation: string; readonly pattern: CanaryPattern; readonly function: IFunction },
): Rule {
  const { source, 'detail-type': detailType, detail } = canary.pattern
  return new Rule(scope, `CanaryRule-${name}`, {
    description: `Outbox ${canary.installation}: brings canary events of destination ${name} back`,
    eventBus: bus,
    eventPattern: { source: [...source], detailType: [...detailType], detail },
    targets: [new LambdaFunction(canary.function, { retryAttempts: 0, maxEventAge: Duration.minutes(1) })],
  })
}
