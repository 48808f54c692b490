import { Duration, Size, Stack } from 'aws-cdk-lib'
import type { Alarm, Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import { Construct } from 'constructs'
import { cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../src/config/settings.js'
import type { Route } from '../src/core/route.js'
import { ConfigurationError } from '../src/core/errors.js'
import { checkInstallation } from './checks.js'
import type { OutboxDestination } from './destination.js'
import { handlerEnvironment } from './environment.js'
import { migrateAtDeploy } from './migration.js'
import { backlogAgeAlarm, createAlarmTopic } from './monitoring/alarms.js'
import { outboxMetric } from './monitoring/metrics.js'
import { type HandlerName, RelayFunction } from './relay-function.js'
import { type RelayTuning, resolveTuning } from './relay-tuning.js'
import { tick } from './schedules.js'

/** How long a deployment waits for a cluster that resumes (15 to 30 s) or was just created (minutes). */
const migrateSeconds = 300

/** The Aurora cluster that holds the outbox. Its Data API must be on. */
export interface OutboxCluster {
  readonly clusterArn: string
  /** Name and password of the database user that the functions work as. */
  readonly secret: ISecret
  readonly database: string
  /**
   * The schema of the outbox tables.
   *
   * @default 'public'
   */
  readonly schema?: string
}

export interface OutboxAlarmProps {
  /**
   * The alarm goes off when the oldest due event has waited longer than this in 3 of 5 measurements.
   *
   * @default - 60 seconds; in profile `drain` twice the tick
   */
  readonly backlogAge?: Duration
  /**
   * Where alarms go.
   *
   * @default - a new topic, encrypted with a key of its own
   */
  readonly topic?: ITopic
  /**
   * An address that the new topic mails to, once its owner has confirmed.
   *
   * @default - nobody
   */
  readonly email?: string
}

export interface OutboxRelayProps {
  /**
   * The installation's name: the `service` of its metrics and logs. One outbox is served by one installation.
   *
   * @default - the stack's name
   */
  readonly installation?: string
  readonly cluster: OutboxCluster
  /**
   * CloudEvents `source`, and EventBridge's `Source`, of every message.
   *
   * @default 'outbox-relay'
   */
  readonly source?: string
  /** Destination name -> where it is. */
  readonly destinations: Readonly<Record<string, OutboxDestination>>
  /**
   * The first route that matches an event's type decides, unless the row names a destination itself.
   *
   * @default - none
   */
  readonly routes?: readonly Route[]
  /**
   * Where events go that no route matches.
   *
   * @default - they wait, and an alarm says so
   */
  readonly defaultDestination?: string
  /**
   * `continuous` relays without a pause; `drain` empties the outbox at each tick, so that a cluster with a minimum capacity
   * of 0 can pause in between.
   *
   * @default 'continuous'
   */
  readonly profile?: 'continuous' | 'drain'
  /**
   * The time between two passes' starts.
   *
   * @default - 1 minute; in profile `drain` 10 minutes
   */
  readonly tick?: Duration
  /**
   * The relay's numbers, by their names in docs/configuration.md.
   *
   * @default - as that table says
   */
  readonly relay?: RelayTuning
  /**
   * How long delivered and discarded events are kept.
   *
   * @default Duration.days(7)
   */
  readonly retention?: Duration
  /**
   * How long failed events are kept before they are discarded.
   *
   * @default - for ever
   */
  readonly failedRetention?: Duration
  /**
   * How long the functions' logs are kept.
   *
   * @default RetentionDays.ONE_MONTH
   */
  readonly logRetention?: RetentionDays
  /**
   * The relay's memory, and with it its share of a processor.
   *
   * @default Size.mebibytes(512)
   */
  readonly relayMemory?: Size
  /** @default - a new topic that nobody has subscribed to */
  readonly alarms?: OutboxAlarmProps
}

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

function databaseRights(cluster: OutboxCluster, actions: readonly string[]): readonly PolicyStatement[] {
  const { clusterArn, secret } = cluster
  return [
    new PolicyStatement({ actions: [...actions], resources: [clusterArn] }),
    // the Data API reads the secret in the caller's name
    new PolicyStatement({ actions: ['secretsmanager:GetSecretValue'], resources: [secret.secretArn] }),
    ...(secret.encryptionKey === undefined
      ? []
      : [
          new PolicyStatement({
            actions: ['kms:Decrypt'],
            resources: [secret.encryptionKey.keyArn],
            conditions: { StringEquals: { 'kms:ViaService': `secretsmanager.${secret.env.region}.amazonaws.com` } },
          }),
        ]),
  ]
}

/** In profile `drain` relay and monitor tick together, on the clock: the cluster wakes once for both. */
function tickExpression(profile: 'continuous' | 'drain', period: Duration): ScheduleExpression {
  if (profile === 'continuous') return ScheduleExpression.rate(period)
  const minutes = period.toMinutes()
  return ScheduleExpression.cron({ minute: minutes === 60 ? '0' : `0/${minutes}` })
}
