import { Duration } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, type Metric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { ILogGroup } from 'aws-cdk-lib/aws-logs'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import type { Construct, IDependable } from 'constructs'
import type { MetricName } from '../../src/core/ports.js'
import { type AlarmName, alarmCatalogue, runbook } from './alarm-catalogue.js'
import { destinationMetric, outboxMetric } from './metrics.js'

/** The alarms that every installation has, by name. */
export type OutboxAlarms = Readonly<Record<Exclude<AlarmName, 'canary'>, Alarm>>

/** A function, as far as alarms and their texts need it. */
export interface WatchedFunction {
  readonly function: IFunction
  readonly logGroup: ILogGroup
}

interface CommonProps {
  readonly installation: string
  readonly topic: ITopic
  /** Where the runbook can be read. Default: its path in the package. */
  readonly runbookUrl?: string | undefined
  /**
   * The schedules. An alarm that takes silence for a fault must not exist before they do: it would go off while a first
   * deployment waits for its cluster.
   */
  readonly after: readonly IDependable[]
}

export interface AlarmsProps extends CommonProps {
  /** Of relay and monitor: the period of the alarms on them. */
  readonly tick: Duration
  /** How long one pass of the relay lasts. */
  readonly pass: Duration
  readonly relay: WatchedFunction
  readonly monitor: WatchedFunction
  readonly cleanup: WatchedFunction
  readonly backlogAge: Duration
  /** Failed invocations in one period that wake nobody. Default 0. */
  readonly relayErrors?: number | undefined
  /** Lost shards in one period that wake nobody. Default 0. */
  readonly leaseLost?: number | undefined
  /** Failed calls in one period that wake nobody. Default 0. */
  readonly dataApiErrors?: number | undefined
}

export interface CanaryAlarmProps extends CommonProps {
  /** The destination that test events go through. */
  readonly destination: string
  readonly canary: WatchedFunction
  /** One test event per period. */
  readonly period: Duration
  /** How long a test event may be on its way. */
  readonly age: Duration
}

interface Condition {
  readonly metric: Metric
  readonly is: 'above' | 'below'
  readonly threshold: number
  /** Breaching periods, of so many. */
  readonly periods: readonly [number, number]
  /**
   * `fault`: nobody measures, which is an alarm. `fine`: the metric only comes when something happens. `unknown`: nobody
   * measures, which is another alarm's business, and no reason to say that this one is over.
   */
  readonly silence: 'fault' | 'fine' | 'unknown'
}

const treatments = {
  fault: TreatMissingData.BREACHING,
  fine: TreatMissingData.NOT_BREACHING,
  unknown: TreatMissingData.IGNORE,
} as const

/** A day, by the hour: CloudWatch looks at no more than a day at once. */
const hoursOfCleanup = 24

/** Makes the alarms, all but those on canaries. Each tells the topic when it goes off and when it is over. */
export function createAlarms(scope: Construct, props: AlarmsProps): OutboxAlarms {
  const { relay, monitor, cleanup } = props
  const said = {
    'backlog age': `${props.backlogAge.toSeconds()} s`,
    'log group of the relay': relay.logGroup.logGroupName,
    'log group of the monitor': monitor.logGroup.logGroupName,
    'log group of the cleanup': cleanup.logGroup.logGroupName,
  }
  const conditions = Object.entries(conditionsOf(props)) as [keyof OutboxAlarms, Condition][]
  const alarms = conditions.map(([name, condition]) => {
    const id = `${name.charAt(0).toUpperCase()}${name.slice(1)}Alarm`
    return [name, createAlarm(scope, id, condition, { name, said, ...props })] as const
  })
  return Object.fromEntries(alarms) as OutboxAlarms
}

/** Makes the alarm on the canary of one destination. A test event that comes back tells its age; one that does not tells nothing. */
export function createCanaryAlarm(scope: Construct, id: string, props: CanaryAlarmProps): Alarm {
  const { installation, destination, canary, period, age } = props
  const condition = {
    metric: destinationMetric('CanaryAge', installation, destination, { statistic: Stats.MAXIMUM, period }),
    is: 'above',
    threshold: age.toSeconds(),
    periods: [2, 3],
    silence: 'fault',
  } as const
  const said = { destination, 'log group of the canary': canary.logGroup.logGroupName }
  return createAlarm(scope, id, condition, { name: 'canary', said, ...props })
}

interface AlarmOptions extends CommonProps {
  readonly name: AlarmName
  /** What stands for the angle brackets in its text. */
  readonly said: Readonly<Record<string, string>>
}

function createAlarm(scope: Construct, id: string, condition: Condition, options: AlarmOptions): Alarm {
  const { metric, is, threshold, silence } = condition
  const [datapointsToAlarm, evaluationPeriods] = condition.periods
  const alarm = new Alarm(scope, id, {
    alarmDescription: description(options),
    metric,
    threshold,
    comparisonOperator: is === 'above' ? ComparisonOperator.GREATER_THAN_THRESHOLD : ComparisonOperator.LESS_THAN_THRESHOLD,
    datapointsToAlarm,
    evaluationPeriods,
    treatMissingData: treatments[silence],
  })
  const notify = new SnsAction(options.topic)
  alarm.addAlarmAction(notify)
  alarm.addOkAction(notify)
  if (silence === 'fault') alarm.node.addDependency(...options.after)
  return alarm
}

/** What it means, the first command, and where to read on. */
function description({ installation, name, said, runbookUrl = runbook }: AlarmOptions): string {
  const { meaning, firstCommand, section } = alarmCatalogue[name]
  const text = `Outbox ${installation}: ${meaning}. First command: ${firstCommand}. Then ${runbookUrl}, section "${section}"`
  return text.replace(/<([^>]+)>/g, (whole, what: string) => said[what] ?? whole)
}

function conditionsOf(props: AlarmsProps): Readonly<Record<keyof OutboxAlarms, Condition>> {
  const { installation, tick, pass, relay } = props
  const outbox = (name: MetricName, statistic: string, period = tick) => outboxMetric(name, installation, { statistic, period })
  const lambda = (name: string) => relay.function.metric(name, { statistic: Stats.SUM, period: tick })
  // a period may see no pass end, and the first pass ends when it has run its time: three more are silence
  const silent = 3 + Math.ceil(pass.toSeconds() / tick.toSeconds())
  const nothing = { is: 'below', threshold: 1, periods: [silent, silent], silence: 'fault' } as const
  const any = { is: 'above', threshold: 0, periods: [1, 1], silence: 'unknown' } as const
  // a failover, a frozen process or a lost tick heals by itself, within two minutes
  const again = { is: 'above', threshold: 0, periods: [3, 5], silence: 'fine' } as const
  return {
    // the monitor measures 0 when nothing waits: silence is a fault of its own
    backlogAge: {
      ...again,
      metric: outbox('BacklogAge', Stats.MAXIMUM),
      threshold: props.backlogAge.toSeconds(),
      silence: 'fault',
    },
    failedEvents: { ...any, metric: outbox('FailedEvents', Stats.MAXIMUM) },
    relaySilent: { ...nothing, metric: outbox('PassCompleted', Stats.SUM) },
    monitorSilent: { ...nothing, metric: outbox('BacklogAge', Stats.SAMPLE_COUNT) },
    // Lambda counts an invocation that its timeout killed as an error
    relayErrors: { ...again, metric: lambda('Errors'), threshold: props.relayErrors ?? 0 },
    // a monitor or a cleanup that is throttled is silent, and that is an alarm
    relayThrottled: { ...again, metric: lambda('Throttles') },
    ticksDropped: { ...again, metric: lambda('AsyncEventsDropped') },
    // each cleanup that ends says 0, or 1 if its time was over first
    cleanupOverdue: {
      is: 'above',
      threshold: 0,
      metric: outbox('CleanupBehind', Stats.MAXIMUM, Duration.hours(1)),
      periods: [hoursOfCleanup, hoursOfCleanup],
      silence: 'fault',
    },
    // tried again once a minute at least, and counted each time
    unroutedEvents: { ...any, metric: outbox('Unrouted', Stats.SUM), periods: [2, 3], silence: 'fine' },
    leaseLost: { ...again, metric: outbox('LeaseLost', Stats.SUM), threshold: props.leaseLost ?? 0 },
    dataApiErrors: { ...again, metric: outbox('DataApiErrors', Stats.SUM), threshold: props.dataApiErrors ?? 0 },
    destinationsMissing: { ...any, metric: outbox('DestinationsMissing', Stats.MAXIMUM) },
    // an outage of a few minutes heals by itself; one that waiting will not heal is told at once
    circuitOpen: { ...again, metric: outbox('OpenCircuits', Stats.MAXIMUM), silence: 'unknown' },
    destinationMisconfigured: { ...any, metric: outbox('MisconfiguredDestinations', Stats.MAXIMUM) },
  }
}
