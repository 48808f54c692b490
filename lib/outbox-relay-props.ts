import type { Duration, Size } from 'aws-cdk-lib'
import type { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import type { Route } from '../src/core/route.js'
import type { OutboxDestination } from './destination.js'
import type { RelayTuning } from './relay-tuning.js'

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
