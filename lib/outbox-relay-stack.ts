import { Arn, ArnFormat, CfnOutput, Duration, Fn, Size, Stack, type StackProps, Tags } from 'aws-cdk-lib'
import { ManagedPolicy, PermissionsBoundary } from 'aws-cdk-lib/aws-iam'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Tracing } from 'aws-cdk-lib/aws-lambda'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { DatabaseCluster } from 'aws-cdk-lib/aws-rds'
import { Topic } from 'aws-cdk-lib/aws-sns'
import type { Construct } from 'constructs'
import { checkRouting } from './checks.js'
import { OutboxRelay } from './outbox-relay.js'
import { clusterOf } from './stack-cluster.js'
import { destinationOutput, type StackConfig } from './stack-config.js'
import { destinationOf } from './stack-destinations.js'

export interface OutboxRelayStackProps extends StackProps {
  readonly config: StackConfig
}

/**
 * One installation, as the configuration describes it. With an existing cluster it is in the cluster's account and region: the
 * Data API takes calls from there alone.
 *
 * @example
 * new OutboxRelayStack(app, 'orders-outbox', { config: parseStackConfig(json) })
 */
export class OutboxRelayStack extends Stack {
  readonly outbox: OutboxRelay
  /** The cluster, if the stack makes it. */
  readonly database?: DatabaseCluster

  /** @throws ConfigurationError naming the property, the value seen and the value allowed. */
  constructor(scope: Construct, id: string, props: OutboxRelayStackProps) {
    const { config, ...stackProps } = props
    const { clusterArn, create } = config.cluster
    super(scope, id, {
      description: `Outbox Relay ${config.installation}: publishes the events of an Aurora outbox`,
      ...(clusterArn === undefined ? {} : { env: environmentOf(clusterArn) }),
      // a cluster refuses to be deleted, but the instance in it does not
      terminationProtection: create !== undefined && create.deletionProtection !== 'off',
      ...stackProps,
    })
    const { alarms } = config
    // all are known here: no need to wait for synthesis
    checkRouting({
      destinations: Object.keys(config.destinations),
      routes: config.routes ?? [],
      defaultDestination: config.default,
    })
    const { cluster, created } = clusterOf(this, config.cluster)
    const destinations = Object.fromEntries(
      Object.entries(config.destinations).map(([name, destination]) => [name, destinationOf(this, name, destination)]),
    )

    this.outbox = new OutboxRelay(this, 'Outbox', {
      installation: config.installation,
      takeOverFrom: config.takeOverFrom,
      cluster,
      source: config.source,
      destinations,
      routes: config.routes,
      defaultDestination: config.default,
      profile: config.profile,
      tick: optional(config.tickMinutes, (minutes) => Duration.minutes(minutes)),
      relays: config.relays,
      reservedConcurrency: config.reservedConcurrency,
      relay: config.relay,
      schemaManagement: config.schema === 'managed-elsewhere' ? 'managed-elsewhere' : 'at-deployment',
      retention: optional(config.retentionDays, days),
      failedRetention: optional(config.failedRetentionDays, days),
      logRetention: optional(config.logRetentionDays, (retention) => logRetentions[retention]),
      passwordRotation: optional(config.passwordRotationDays, (count) => Duration.days(count)),
      userSecretsKey: optional(config.userSecretsKeyArn, (arn) => Key.fromKeyArn(this, 'UserSecretsKey', arn)),
      relayMemory: optional(config.relayMemoryMiB, (mebibytes) => Size.mebibytes(mebibytes)),
      tracing: config.tracing === 'on' ? Tracing.ACTIVE : undefined,
      canary: config.canary,
      canaryInterval: optional(config.canaryMinutes, (minutes) => Duration.minutes(minutes)),
      alarms: {
        backlogAge: optional(alarms?.backlogAgeSeconds, (seconds) => Duration.seconds(seconds)),
        relayErrors: alarms?.relayErrors,
        leaseLost: alarms?.leaseLost,
        dataApiErrors: alarms?.dataApiErrors,
        email: alarms?.email,
        runbookUrl: alarms?.runbookUrl,
        topic: optional(alarms?.topicArn, (arn) => Topic.fromTopicArn(this, 'AlarmTopic', arn)),
      },
    })

    this.database = created?.cluster

    const { permissionsBoundaryArn } = config
    if (permissionsBoundaryArn !== undefined)
      PermissionsBoundary.of(this).apply(ManagedPolicy.fromManagedPolicyArn(this, 'PermissionsBoundary', permissionsBoundaryArn))
    for (const [name, value] of Object.entries(config.tags ?? {})) Tags.of(this).add(name, value)

    const outputs = {
      RelayFunctionName: this.outbox.relayFunction.functionName,
      MonitorFunctionName: this.outbox.monitorFunction.functionName,
      CleanupFunctionName: this.outbox.cleanupFunction.functionName,
      ...(this.outbox.migrateFunction === undefined ? {} : { MigrateFunctionName: this.outbox.migrateFunction.functionName }),
      AlarmTopicArn: this.outbox.alarmTopic.topicArn,
      ...(created === undefined
        ? {}
        : { ClusterArn: created.cluster.clusterArn, MasterSecretArn: created.masterSecret.secretArn }),
    }
    for (const [role, { secretArn }] of Object.entries(this.outbox.userSecrets))
      new CfnOutput(this, `${role.charAt(0).toUpperCase()}${role.slice(1)}SecretArn`, { value: secretArn })
    for (const [name, value] of Object.entries(outputs)) new CfnOutput(this, name, { value })
    for (const [name, { arn }] of Object.entries(destinations)) {
      if (config.destinations[name]?.create !== undefined) new CfnOutput(this, destinationOutput(name), { value: arn })
    }
  }

  /** Found by CloudFormation, at deployment: the CDK would look them up, with credentials. */
  override get availabilityZones(): string[] {
    return [0, 1].map((index) => Fn.select(index, Fn.getAzs()))
  }
}

function environmentOf(clusterArn: string): { readonly account?: string | undefined; readonly region?: string | undefined } {
  const { account, region } = Arn.split(clusterArn, ArnFormat.COLON_RESOURCE_NAME)
  return { account, region }
}

const logRetentions: Readonly<Record<NonNullable<StackConfig['logRetentionDays']>, RetentionDays>> = {
  1: RetentionDays.ONE_DAY,
  3: RetentionDays.THREE_DAYS,
  5: RetentionDays.FIVE_DAYS,
  7: RetentionDays.ONE_WEEK,
  14: RetentionDays.TWO_WEEKS,
  30: RetentionDays.ONE_MONTH,
  60: RetentionDays.TWO_MONTHS,
  90: RetentionDays.THREE_MONTHS,
  180: RetentionDays.SIX_MONTHS,
  365: RetentionDays.ONE_YEAR,
  731: RetentionDays.TWO_YEARS,
}

const optional = <In, Out>(value: In | undefined, map: (value: In) => Out): Out | undefined =>
  value === undefined ? undefined : map(value)

/** A day may be given in parts; a second is the runtime's unit. */
const days = (value: number): Duration => Duration.seconds(Math.round(value * 86_400))
