import { Duration, Size, Stack } from 'aws-cdk-lib'
import type { Alarm, Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import { Construct } from 'constructs'
import { cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../src/config/settings.js'
import { ConfigurationError } from '../src/core/errors.js'
import { checkInstallation } from './checks.js'
import { databaseRights } from './database-rights.js'
import { handlerEnvironment } from './environment.js'
import { migrateAtDeploy } from './migration.js'
import { backlogAgeAlarm, createAlarmTopic } from './monitoring/alarms.js'
import { outboxMetric } from './monitoring/metrics.js'
import type { OutboxRelayProps } from './outbox-relay-props.js'
import { type HandlerName, RelayFunction } from './relay-function.js'
import { resolveTuning } from './relay-tuning.js'
import { tick } from './schedules.js'

/** How long a deployment waits for a cluster that resumes (15 to 30 s) or was just created (minutes). */
const migrateSeconds = 300

/**
 * Relays the events of one outbox: four functions, their schedules, the migration at deployment, and the alarm.
 *
 * @example
 * const outbox = new OutboxRelay(this, 'Outbox', {
 *   cluster: { clusterArn: cluster.clusterArn, secret, database: 'orders' },
 *   destinations: { bus: OutboxDestination.eventBus(bus), orders: OutboxDestination.queue(queue) },
 *   routes: [{ eventType: 'Order*', to: 'orders' }],
 *   defaultDestination: 'bus',
 * })
 * outbox.alarmTopic.addSubscription(new EmailSubscription('on-call@example.com'))
 */
export class OutboxRelay extends Construct {
  readonly installation: string
  readonly relayFunction: IFunction
  readonly cleanupFunction: IFunction
  readonly monitorFunction: IFunction
  readonly migrateFunction: IFunction
  readonly alarmTopic: ITopic
  readonly backlogAgeAlarm: Alarm

  /** @throws ConfigurationError naming the property, the value seen and the value allowed. */
  constructor(scope: Construct, id: string, props: OutboxRelayProps) {
    super(scope, id)
    const stack = Stack.of(this)
    this.installation = props.installation ?? stack.stackName

    const profile = props.profile ?? 'continuous'
    const period = props.tick ?? Duration.minutes(profile === 'drain' ? 10 : 1)
    const threshold = props.alarms?.backlogAge ?? Duration.seconds(profile === 'drain' ? 2 * period.toSeconds() : 60)
    const tuning = resolveTuning(props.relay ?? {})
    checkInstallation({
      profile,
      tickMinutes: period.toMinutes(),
      tuning,
      backlogAgeSeconds: threshold.toSeconds(),
      destinations: props.destinations,
      routes: props.routes ?? [],
      defaultDestination: props.defaultDestination,
      region: stack.region,
    })

    // ---- what each function is told, and may do

    const { clusterArn, secret, database, schema } = props.cluster
    const where = { resourceArn: clusterArn, secretArn: secret.secretArn, database, schema, installation: this.installation }
    const logRetention = props.logRetention ?? RetentionDays.ONE_MONTH
    const handler = (name: HandlerName, of: Omit<ConstructorParameters<typeof RelayFunction>[2], 'handler' | 'logRetention'>) =>
      new RelayFunction(this, name.charAt(0).toUpperCase() + name.slice(1), { handler: name, logRetention, ...of })

    const migrate = handler('migrate', {
      description: `Outbox ${this.installation}: brings the schema up to date at deployment`,
      environment: handlerEnvironment(stack, migrateSettings, { ...where, migrateSeconds }),
      // the wait for a resuming cluster, and time to say why it was in vain
      timeout: Duration.seconds(migrateSeconds + 30),
      memory: Size.mebibytes(256),
      statements: [
        ...databaseRights(props.cluster, [
          'rds-data:BeginTransaction',
          'rds-data:ExecuteStatement',
          'rds-data:CommitTransaction',
          'rds-data:RollbackTransaction',
        ]),
      ],
    })
    const relay = handler('relay', {
      description: `Outbox ${this.installation}: moves events to their destinations`,
      environment: handlerEnvironment(stack, relaySettings, {
        ...where,
        source: props.source,
        destinations: Object.fromEntries(Object.entries(props.destinations).map(([name, { settings }]) => [name, settings])),
        routes: props.routes,
        defaultDestination: props.defaultDestination,
        profile,
        ...tuning,
      }),
      // the pass ends itself; then the last requests come back (5 s by default), and 10 s are for settling and margins
      timeout: Duration.seconds(tuning.passSeconds + Math.ceil(tuning.requestTimeoutMs / 1000) + 10),
      memory: props.relayMemory ?? Size.mebibytes(512),
      statements: [
        ...databaseRights(props.cluster, ['rds-data:ExecuteStatement']),
        ...Object.values(props.destinations).flatMap(({ statements }) => statements),
      ],
      scheduled: 'scheduled',
    })
    const monitor = handler('monitor', {
      description: `Outbox ${this.installation}: measures the backlog, independently of the relay`,
      environment: handlerEnvironment(stack, monitorSettings, where),
      // long enough for a cluster that resumes (15 to 30 s), shorter than the shortest period
      timeout: Duration.seconds(55),
      memory: Size.mebibytes(256),
      statements: databaseRights(props.cluster, ['rds-data:ExecuteStatement']),
      scheduled: 'scheduled',
    })
    const cleanup = handler('cleanup', {
      description: `Outbox ${this.installation}: deletes delivered events past retention`,
      environment: handlerEnvironment(stack, cleanupSettings, {
        ...where,
        retentionSeconds: props.retention?.toSeconds(),
        failedRetentionSeconds: props.failedRetention?.toSeconds(),
      }),
      timeout: Duration.minutes(5),
      memory: Size.mebibytes(256),
      statements: databaseRights(props.cluster, ['rds-data:ExecuteStatement']),
      scheduled: 'scheduled',
    })

    // ---- when they run

    const every = tickExpression(profile, period)
    const monitorSchedule = tick(this, 'MonitorSchedule', {
      description: `Outbox ${this.installation}: monitor`,
      expression: every,
      target: monitor.function,
    })
    const schedules = [
      monitorSchedule,
      tick(this, 'RelaySchedule', {
        description: `Outbox ${this.installation}: relay`,
        expression: every,
        target: relay.function,
      }),
      tick(this, 'CleanupSchedule', {
        description: `Outbox ${this.installation}: cleanup`,
        expression: ScheduleExpression.rate(Duration.hours(1)),
        target: cleanup.function,
      }),
    ]
    migrateAtDeploy(this, 'Migration', {
      function: migrate.function,
      timeout: migrate.function.timeout ?? Duration.minutes(15),
      before: [relay.function, monitor.function, cleanup.function, ...schedules],
    })

    // ---- who hears of it

    if (props.alarms?.email !== undefined && props.alarms.topic !== undefined)
      throw new ConfigurationError(
        'alarms.email',
        `alarms.email is "${props.alarms.email}", but alarms go to a topic of yours. Remove alarms.email and subscribe the address to that topic`,
      )
    this.alarmTopic = props.alarms?.topic ?? createAlarmTopic(this, 'AlarmTopic', { email: props.alarms?.email })
    this.backlogAgeAlarm = backlogAgeAlarm(this, 'BacklogAgeAlarm', {
      installation: this.installation,
      topic: this.alarmTopic,
      threshold,
      period,
    })
    // silence is an alarm: it must not begin while a first deployment waits for its cluster
    this.backlogAgeAlarm.node.addDependency(monitorSchedule)

    this.relayFunction = relay.function
    this.cleanupFunction = cleanup.function
    this.monitorFunction = monitor.function
    this.migrateFunction = migrate.function
  }

  /**
   * Age of the oldest event that is due and neither delivered nor failed, in seconds; 0 when there is none.
   *
   * @default - maximum over 5 minutes
   */
  metricBacklogAge(options: MetricOptions = {}): Metric {
    return outboxMetric('BacklogAge', this.installation, { statistic: 'Maximum', ...options })
  }
}

/** In profile `drain` relay and monitor tick together, on the clock: the cluster wakes once for both. */
function tickExpression(profile: 'continuous' | 'drain', period: Duration): ScheduleExpression {
  if (profile === 'continuous') return ScheduleExpression.rate(period)
  const minutes = period.toMinutes()
  return ScheduleExpression.cron({ minute: minutes === 60 ? '0' : `0/${minutes}` })
}
