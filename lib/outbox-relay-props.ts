import type { Duration, Size } from 'aws-cdk-lib'
import type { Tracing } from 'aws-cdk-lib/aws-lambda'
import type { IKey } from 'aws-cdk-lib/aws-kms'
import type { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import type { IDependable } from 'constructs'
import type { Route } from '../src/core/route.js'
import type { OutboxDestination } from './destination.js'
import type { RelayTuning } from './relay-tuning.js'

/** The Aurora cluster that holds the outbox. Its Data API must be on. */
export interface OutboxCluster {
  readonly clusterArn: string
  /**
   * Name and password of the database's master: a user who may create the tables and roles of the outbox, and users for its
   * functions. The migration alone works as this user.
   */
  readonly secret: ISecret
  readonly database: string
  /**
   * The schema of the outbox tables.
   *
   * @default 'public'
   */
  readonly schema?: string
  /**
   * What must be there before the migration can reach the database: the `DatabaseCluster`, where the same app makes it.
   * Otherwise the migration may begin before the cluster has an instance, and give up.
   *
   * @default - the cluster runs already
   */
  readonly waitFor?: IDependable
  /**
   * The cluster's smallest capacity in ACU, where it is serverless. Only warned about: with 0 it is meant to pause, which a
   * relay in profile `continuous` never lets it.
   *
   * @default - not known, so nothing is said
   */
  readonly minCapacity?: number
}

export interface OutboxAlarmProps {
  /**
   * The alarm goes off when the oldest due event has waited longer than this in 3 of 5 measurements.
   *
   * @default - 60 seconds; in profile `drain` twice the tick
   */
  readonly backlogAge?: Duration
  /**
   * The alarm goes off when more invocations of the relay than this fail within a tick, in 3 of 5 ticks.
   *
   * @default 0
   */
  readonly relayErrors?: number
  /**
   * The alarm goes off when relays lose more shards than this to each other within a tick, in 3 of 5 ticks.
   *
   * @default 0
   */
  readonly leaseLost?: number
  /**
   * The alarm goes off when more calls of the Data API than this fail within a tick, in 3 of 5 ticks.
   *
   * @default 0
   */
  readonly dataApiErrors?: number
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
  /**
   * Where your team reads the runbook: each alarm's text and the dashboard send there.
   *
   * @default - `docs/runbook.md`, its path in the package
   */
  readonly runbookUrl?: string
}

export interface OutboxRelayProps {
  /**
   * The installation's name: the `service` of its metrics and logs. One outbox is served by one installation.
   *
   * @default - the stack's name
   */
  readonly installation?: string
  /**
   * The installation that this one takes the outbox over from, at its next deployment. The relay of that one stops: what
   * begins refuses at once, a pass under way ends with its time. Remove the property afterwards.
   *
   * @default - an outbox of another installation is refused
   */
  readonly takeOverFrom?: string
  readonly cluster: OutboxCluster
  /**
   * CloudEvents `source`, and EventBridge's `Source`, of every message.
   *
   * @default 'outbox-relay'
   */
  readonly source?: string
  /**
   * Destination name -> where it is.
   *
   * @default - those that `addDestination` adds
   */
  readonly destinations?: Readonly<Record<string, OutboxDestination>>
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
   * How many relays work in parallel, 1 to 8: so many schedules of the one function. Each takes other shards of the outbox.
   *
   * @default 1
   */
  readonly relays?: number
  /**
   * Concurrency kept free for the relay, and the most it gets: never needed for correctness, which leases see to. At least
   * what overlapping passes need (2 per relay, by default); Lambda refuses it where fewer than 100 would remain unreserved.
   *
   * @default - the account's unreserved concurrency
   */
  readonly reservedConcurrency?: number
  /**
   * Who keeps the schema up to date. `at-deployment`: each deployment brings it to its release before anything else changes.
   * `managed-elsewhere`: nothing in the stack changes it, there is no migrate function, and no password is rotated. Run
   * `npx aurora-outbox-relay migrate` before each deployment; the first time its plain SQL will do too. The secrets of the functions' database users
   * are there only after the first one: deploy, then run `migrate --user-secret relay=<ARN>` and so on, with the ARNs in
   * `userSecrets` (docs/deploy.md). Until then the functions cannot log in, and alarms say so.
   *
   * @default 'at-deployment'
   */
  readonly schemaManagement?: 'at-deployment' | 'managed-elsewhere'
  /**
   * The relay's numbers, by their names in docs/configuration.md.
   *
   * @default - as that table says
   */
  readonly relay?: RelayTuning
  /**
   * How long delivered and discarded events are kept: a minute at least, in which a writer may still ask for them.
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
  /**
   * Whether X-Ray traces the functions' invocations.
   *
   * @default Tracing.DISABLED
   */
  readonly tracing?: Tracing
  /**
   * Whether test events go through the outbox to each bus of this account, and back by a rule: the proof that events arrive,
   * which nothing else gives, since EventBridge answers success whatever becomes of them.
   *
   * @default 'on'
   */
  readonly canary?: 'on' | 'off'
  /**
   * The time between two test events, 1 to 60 whole minutes; in profile `drain` they share the tick.
   *
   * @default Duration.minutes(5)
   */
  readonly canaryInterval?: Duration
  /**
   * How often Secrets Manager gives each function's database user a new password, in whole days up to 1000; 0: whenever
   * somebody asks for it. Functions never notice: two users take turns.
   *
   * @default Duration.days(30)
   */
  readonly passwordRotation?: Duration
  /**
   * The key that seals the secrets of the functions' database users.
   *
   * @default - the account's own key of Secrets Manager
   */
  readonly userSecretsKey?: IKey
  /** @default - a new topic that nobody has subscribed to */
  readonly alarms?: OutboxAlarmProps
}
