import { Duration, Size, Stack } from 'aws-cdk-lib'
import type { Alarm } from 'aws-cdk-lib/aws-cloudwatch'
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import type { Construct } from 'constructs'
import { cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../src/config/settings.js'
import type { UserRole } from '../src/core/database-user.js'
import { ConfigurationError } from '../src/core/errors.js'
import { Canary, canaryPeriod } from './canary.js'
import { checkDestination, checkRouting, checkTiming } from './checks.js'
import { databaseRights, transactionCalls } from './database-rights.js'
import { DatabaseUsers } from './database-users.js'
import type { OutboxDestination } from './destination.js'
import { handlerEnvironment } from './environment.js'
import { createFailedInvocations } from './failed-invocations.js'
import { migrateAtDeploy } from './migration.js'
import { createAlarmTopic } from './monitoring/alarm-topic.js'
import { createAlarms, type OutboxAlarms } from './monitoring/alarms.js'
import { OutboxDashboard } from './monitoring/dashboard.js'
import { MeasuredOutbox } from './monitoring/measured-outbox.js'
import type { OutboxRelayProps } from './outbox-relay-props.js'
import { type HandlerName, RelayFunction, type RelayFunctionProps } from './relay-function.js'
import { resolveTuning } from './relay-tuning.js'
import { tick, tickExpression } from './schedules.js'
import { warnOfSleeplessCluster, warnOfUnorderedFifo } from './warnings.js'

/** How long a deployment waits for a cluster that resumes (15 to 30 s) or was just created (minutes). */
const migrateSeconds = 300

/**
 * Relays the events of one outbox: its functions, their schedules, the migration at deployment, and the alarms.
 *
 * @example
 * const outbox = new OutboxRelay(this, 'Outbox', {
 *   cluster: { clusterArn: cluster.clusterArn, secret, database: 'orders', waitFor: cluster },
 *   destinations: { bus: OutboxDestination.eventBus(bus), orders: OutboxDestination.queue(queue) },
 *   routes: [{ eventType: 'Order*', to: 'orders' }],
 *   defaultDestination: 'bus',
 * })
 * outbox.alarmTopic.addSubscription(new EmailSubscription('on-call@example.com'))
 */
export class OutboxRelay extends MeasuredOutbox {
  readonly installation: string
  readonly relayFunction: IFunction
  readonly cleanupFunction: IFunction
  readonly monitorFunction: IFunction
  /** None if the schema is managed elsewhere. */
  readonly migrateFunction: IFunction | undefined
  readonly alarmTopic: ITopic
  readonly alarms: OutboxAlarms
  /** Function -> the secret of its database user. */
  readonly userSecrets: Readonly<Partial<Record<UserRole, ISecret>>>
  readonly #props: OutboxRelayProps
  readonly #users: DatabaseUsers
  readonly #relay: RelayFunction
  readonly #dashboard: OutboxDashboard
  readonly #canary: Canary | undefined
  readonly #destinations: Map<string, OutboxDestination>

  /** @throws ConfigurationError naming the property, the value seen and the value allowed. */
  constructor(scope: Construct, id: string, props: OutboxRelayProps) {
    super(scope, id)
    const stack = Stack.of(this)
    this.#props = props
    this.installation = props.installation ?? stack.stackName
    this.#destinations = new Map(Object.entries(props.destinations ?? {}))

    const { profile = 'continuous', relays = 1, reservedConcurrency } = props
    const period = props.tick ?? Duration.minutes(profile === 'drain' ? 10 : 1)
    const threshold = props.alarms?.backlogAge ?? Duration.seconds(profile === 'drain' ? 2 * period.toSeconds() : 60)
    const tuning = resolveTuning(props.relay ?? {})
    // the pass ends itself; then the last requests come back (5 s by default), and 10 s are for settling and margins
    const relayTimeout = Duration.seconds(tuning.passSeconds + Math.ceil(tuning.requestTimeoutMs / 1000) + 10)
    checkTiming({
      profile,
      tickSeconds: period.toSeconds(),
      tuning,
      backlogAgeSeconds: threshold.toSeconds(),
      relays,
      relaySeconds: relayTimeout.toSeconds(),
      reservedConcurrency,
    })
    for (const [name, destination] of this.#destinations) this.#checkDestination(name, destination)
    warnOfSleeplessCluster(this, profile, props.cluster.minCapacity)
    // not before synthesis: destinations may still be added
    this.node.addValidation({ validate: () => this.#routingProblems() })

    // ---- what each function is told, and may do

    const roles = ['relay', 'cleanup', 'monitor', ...(props.canary === 'off' ? [] : (['canary'] as const))] as const
    const users = (this.#users = new DatabaseUsers(this, 'Users', {
      installation: this.installation,
      roles,
      encryptionKey: props.userSecretsKey,
    }))
    this.userSecrets = Object.fromEntries(roles.map((role) => [role, users.secretOf(role)]))
    const execute = (role: UserRole) =>
      databaseRights(props.cluster.clusterArn, users.secretOf(role), ['rds-data:ExecuteStatement'])
    const { logRetention = RetentionDays.ONE_MONTH, tracing } = props
    const handler = (name: HandlerName, of: Omit<RelayFunctionProps, 'handler' | 'logRetention' | 'tracing'>) =>
      new RelayFunction(this, name.charAt(0).toUpperCase() + name.slice(1), { handler: name, logRetention, tracing, ...of })
    const failedInvocations = createFailedInvocations(this, 'FailedInvocations')

    const relay = handler('relay', {
      description: `Outbox ${this.installation}: moves events to their destinations`,
      environment: this.#relayEnvironment(),
      timeout: relayTimeout,
      memory: props.relayMemory ?? Size.mebibytes(512),
      statements: [...execute('relay'), ...[...this.#destinations.values()].flatMap(({ statements }) => statements)],
      reservedConcurrency,
    })
    const monitor = handler('monitor', {
      description: `Outbox ${this.installation}: measures the backlog, independently of the relay`,
      environment: handlerEnvironment(stack, monitorSettings, this.#where(users.secretOf('monitor'))),
      // long enough for a cluster that resumes (15 to 30 s), shorter than the shortest period
      timeout: Duration.seconds(55),
      memory: Size.mebibytes(256),
      statements: execute('monitor'),
    })
    const cleanup = handler('cleanup', {
      description: `Outbox ${this.installation}: deletes delivered events past retention`,
      environment: handlerEnvironment(stack, cleanupSettings, {
        ...this.#where(users.secretOf('cleanup')),
        retentionSeconds: props.retention?.toSeconds(),
        failedRetentionSeconds: props.failedRetention?.toSeconds(),
      }),
      timeout: Duration.minutes(5),
      memory: Size.mebibytes(256),
      statements: execute('cleanup'),
      onFailure: failedInvocations,
    })

    // ---- when they run

    const every = tickExpression(profile, period)
    const monitorSchedule = tick(this, 'MonitorSchedule', {
      description: `Outbox ${this.installation}: monitor`,
      expression: every,
      target: monitor.function,
    })
    const relaySchedules = Array.from({ length: relays }, (_, index) =>
      tick(this, index === 0 ? 'RelaySchedule' : `RelaySchedule${index + 1}`, {
        description: `Outbox ${this.installation}: relay ${index + 1} of ${relays}`,
        expression: every,
        target: relay.function,
      }),
    )
    const cleanupSchedule = tick(this, 'CleanupSchedule', {
      description: `Outbox ${this.installation}: cleanup`,
      expression: tickExpression(profile, Duration.hours(1)),
      target: cleanup.function,
    })

    const schedules = [monitorSchedule, ...relaySchedules, cleanupSchedule]

    // ---- what must be there before

    if (props.schemaManagement !== 'managed-elsewhere') {
      // the one function that works as the master
      const where = this.#where(props.cluster.secret)
      const userSecrets = users.secretArns
      const environment = handlerEnvironment(stack, migrateSettings, {
        ...where,
        takeOverFrom: props.takeOverFrom,
        migrateSeconds,
        userSecrets,
      })
      // the wait for a resuming cluster, and time to say why it was in vain
      const timeout = Duration.seconds(migrateSeconds + 30)
      const migrate = handler('migrate', {
        description: `Outbox ${this.installation}: brings the schema up to date at deployment`,
        environment,
        timeout,
        memory: Size.mebibytes(256),
        statements: [
          ...databaseRights(props.cluster.clusterArn, props.cluster.secret, transactionCalls),
          ...users.makerStatements,
        ],
        onFailure: failedInvocations,
      })
      this.migrateFunction = migrate.function
      const migration = migrateAtDeploy(this, 'Migration', {
        function: migrate,
        timeout,
        environment,
        after: props.cluster.waitFor === undefined ? [] : [props.cluster.waitFor],
        before: [...[relay, monitor, cleanup].flatMap((changed) => [changed.function, changed.policy]), ...schedules],
      })
      users.rotateBy(migrate.function, props.passwordRotation ?? Duration.days(30), migration)
    } else {
      if (props.takeOverFrom !== undefined)
        throw new ConfigurationError(
          'takeOverFrom',
          `takeOverFrom is "${props.takeOverFrom}", but the schema is managed elsewhere. Remove it, and run ` +
            `aurora-outbox-relay migrate --installation ${this.installation} --take-over-from ${props.takeOverFrom}`,
        )
      if (props.passwordRotation !== undefined && props.passwordRotation.toDays() > 0)
        throw new ConfigurationError(
          'passwordRotationDays',
          `passwordRotationDays is ${props.passwordRotation.toDays()}, but passwords are rotated by the migrate function, which a schema ` +
            'that is managed elsewhere leaves out. Remove it, or let the deployment manage the schema',
        )
      users.keepPasswords('The migration makes the users and rotates their passwords, and it runs elsewhere.')
    }

    // ---- who hears of it

    if (props.alarms?.email !== undefined && props.alarms.topic !== undefined)
      throw new ConfigurationError(
        'alarms.email',
        `alarms.email is "${props.alarms.email}", but alarms go to a topic of yours. Remove alarms.email and subscribe the address to that topic`,
      )
    this.alarmTopic = props.alarms?.topic ?? createAlarmTopic(this, 'AlarmTopic', { email: props.alarms?.email })
    this.alarms = createAlarms(this, {
      ...props.alarms,
      installation: this.installation,
      topic: this.alarmTopic,
      backlogAge: threshold,
      tick: period,
      pass: Duration.seconds(tuning.passSeconds),
      relay,
      monitor,
      cleanup,
      after: schedules,
    })
    this.#dashboard = new OutboxDashboard(this, 'Dashboard', {
      installation: this.installation,
      tick: period,
      functions: { relay: relay.function, monitor: monitor.function, cleanup: cleanup.function },
      alarms: this.alarms,
      runbookUrl: props.alarms?.runbookUrl,
    })
    const canaryEvery = canaryPeriod(profile, period, props.canaryInterval)
    if (props.canary !== 'off')
      this.#canary = new Canary(this, {
        installation: this.installation,
        source: props.source,
        where: this.#where(users.secretOf('canary')),
        statements: execute('canary'),
        logRetention,
        tracing,
        expression: tickExpression(profile, canaryEvery),
        period: canaryEvery,
        age: threshold,
        topic: this.alarmTopic,
        runbookUrl: props.alarms?.runbookUrl,
        // and so after the migration
        after: [monitorSchedule],
      })
    for (const [name, destination] of this.#destinations) this.#show(name, destination)

    this.#relay = relay
    this.relayFunction = relay.function
    this.cleanupFunction = cleanup.function
    this.monitorFunction = monitor.function
  }

  /**
   * Adds a destination, for rows and routes that name it.
   *
   * @param name 1 to 64 letters, digits, `-` and `_`
   * @throws ConfigurationError if the name is taken or no good, it is in another region, or the relay's environment becomes
   * larger than Lambda takes.
   * @example
   * outbox.addDestination('billing', OutboxDestination.queue(queue))
   */
  addDestination(name: string, destination: OutboxDestination): void {
    if (this.#destinations.has(name))
      throw new ConfigurationError(
        `destinations.${name}`,
        `destinations.${name} is there already: ${String(this.#destinations.get(name)?.arn)}. Choose another name`,
      )
    this.#checkDestination(name, destination)
    this.#destinations.set(name, destination)
    this.#relay.configure(this.#relayEnvironment())
    this.#relay.allow(destination.statements)
    this.#show(name, destination)
  }

  /**
   * Lets a service write events in its own transactions: calls of the Data API on the cluster, and its own database user's
   * secret. What that user may do is up to the database: make it a member of `outbox_writer`, which inserts and reads nothing
   * of other events.
   *
   * @param userSecret name and password of the service's database user, as a complete ARN
   * @example
   * outbox.grantWrite(orderService, orderUserSecret)
   */
  grantWrite(grantee: IGrantable, userSecret: ISecret): Grant {
    const actions = [...transactionCalls, 'rds-data:BatchExecuteStatement']
    const grants = databaseRights(this.#props.cluster.clusterArn, userSecret, actions).map((statement) =>
      Grant.addToPrincipal({
        grantee,
        actions: statement.actions,
        resourceArns: statement.resources,
        conditions: statement.conditions as Record<string, Record<string, unknown>>,
      }),
    )
    return grants.reduce((all, one) => all.combine(one))
  }

  /** None if there is no bus of this account among the destinations, or the canary is off. */
  get canaryFunction(): IFunction | undefined {
    return this.#canary?.function
  }

  /** Destination name -> alarm, where a canary watches. */
  get canaryAlarms(): ReadonlyMap<string, Alarm> {
    return this.#canary?.alarms ?? new Map<string, Alarm>()
  }

  /** Where the outbox is, in the words of every handler's settings, and whom it logs in as. */
  #where(secret: ISecret) {
    const { clusterArn, database, schema } = this.#props.cluster
    return { resourceArn: clusterArn, secretArn: secret.secretArn, database, schema, installation: this.installation }
  }

  #relayEnvironment(): Readonly<Record<string, string>> {
    const { source, routes, defaultDestination, profile = 'continuous', relay = {} } = this.#props
    return handlerEnvironment(Stack.of(this), relaySettings, {
      ...this.#where(this.#users.secretOf('relay')),
      source,
      // none: some must still be added, or synthesis fails
      ...(this.#destinations.size === 0
        ? {}
        : { destinations: Object.fromEntries([...this.#destinations].map(([name, { settings }]) => [name, settings])) }),
      routes,
      defaultDestination,
      profile,
      ...resolveTuning(relay),
    })
  }

  #show(name: string, destination: OutboxDestination): void {
    this.#dashboard.addDestination(name)
    const canaryAlarm = this.#canary?.watch(name, destination)
    if (canaryAlarm !== undefined) this.#dashboard.addCanary(name, canaryAlarm)
  }

  #checkDestination(name: string, destination: OutboxDestination): void {
    checkDestination(name, destination, Stack.of(this).region)
    warnOfUnorderedFifo(this, name, destination, this.#props.routes ?? [])
  }

  #routingProblems(): string[] {
    const { routes = [], defaultDestination } = this.#props
    try {
      checkRouting({ destinations: [...this.#destinations.keys()], routes, defaultDestination })
      return []
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      return [error.message]
    }
  }
}
