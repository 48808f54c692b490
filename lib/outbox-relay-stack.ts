import { Arn, ArnFormat, CfnOutput, Duration, Size, Stack, type StackProps } from 'aws-cdk-lib'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { RegionInfo } from 'aws-cdk-lib/region-info'
import type { Construct } from 'constructs'
import { OutboxDestination } from './destination.js'
import { OutboxRelay } from './outbox-relay.js'
import type { StackConfig } from './stack-config.js'

export interface OutboxRelayStackProps extends StackProps {
  readonly config: StackConfig
}

/**
 * One installation on an existing cluster, as the configuration describes it, in the cluster's account and region: the Data
 * API takes calls from there alone.
 *
 * @example
 * new OutboxRelayStack(app, 'orders-outbox', { config: parseStackConfig(json) })
 */
export class OutboxRelayStack extends Stack {
  readonly outbox: OutboxRelay

  /** @throws ConfigurationError naming the property, the value seen and the value allowed. */
  constructor(scope: Construct, id: string, props: OutboxRelayStackProps) {
    const { config, ...stackProps } = props
    const { account, region } = Arn.split(config.cluster.clusterArn, ArnFormat.COLON_RESOURCE_NAME)
    super(scope, id, {
      description: `Outbox Relay ${config.installation}: publishes the events of an Aurora outbox`,
      env: { account, region },
      ...stackProps,
    })
    const { cluster, alarms } = config

    this.outbox = new OutboxRelay(this, 'Outbox', {
      installation: config.installation,
      cluster: {
        clusterArn: cluster.clusterArn,
        secret: Secret.fromSecretAttributes(this, 'Secret', {
          secretCompleteArn: cluster.secretArn,
          ...(cluster.secretKeyArn === undefined
            ? {}
            : { encryptionKey: Key.fromKeyArn(this, 'SecretKey', cluster.secretKeyArn) }),
        }),
        database: cluster.database,
        schema: cluster.schema,
      },
      source: config.source,
      destinations: Object.fromEntries(
        Object.entries(config.destinations).map(([name, destination]) => [name, importDestination(this, name, destination)]),
      ),
      routes: config.routes,
      defaultDestination: config.default,
      profile: config.profile,
      tick: optional(config.tickMinutes, (minutes) => Duration.minutes(minutes)),
      relay: config.relay,
      retention: optional(config.retentionDays, days),
      failedRetention: optional(config.failedRetentionDays, days),
      logRetention: config.logRetentionDays,
      relayMemory: optional(config.relayMemoryMiB, (mebibytes) => Size.mebibytes(mebibytes)),
      alarms: {
        backlogAge: optional(alarms?.backlogAgeSeconds, (seconds) => Duration.seconds(seconds)),
        email: alarms?.email,
        topic: optional(alarms?.topicArn, (arn) => Topic.fromTopicArn(this, 'AlarmTopic', arn)),
      },
    })

    const outputs = {
      RelayFunctionName: this.outbox.relayFunction.functionName,
      MonitorFunctionName: this.outbox.monitorFunction.functionName,
      CleanupFunctionName: this.outbox.cleanupFunction.functionName,
      MigrateFunctionName: this.outbox.migrateFunction.functionName,
      AlarmTopicArn: this.outbox.alarmTopic.topicArn,
    }
    for (const [name, value] of Object.entries(outputs)) new CfnOutput(this, name, { value })
  }
}

const optional = <In, Out>(value: In | undefined, map: (value: In) => Out): Out | undefined =>
  value === undefined ? undefined : map(value)

/** A day may be given in parts; a second is the runtime's unit. */
const days = (value: number): Duration => Duration.seconds(Math.round(value * 86_400))

function importDestination(scope: Construct, name: string, destination: StackConfig['destinations'][string]): OutboxDestination {
  const options = { format: destination.format, maxBytes: destination.maxBytes }
  const id = `Destination-${name}`
  switch (destination.type) {
    case 'sqs': {
      const { queueArn, keyArn } = destination
      return OutboxDestination.queue(
        Queue.fromQueueAttributes(scope, id, { queueArn, keyArn, queueUrl: queueUrl(queueArn) }),
        options,
      )
    }
    case 'sns': {
      const { topicArn, keyArn } = destination
      return OutboxDestination.topic(Topic.fromTopicAttributes(scope, id, { topicArn, keyArn }), options)
    }
    case 'eventbridge':
      return OutboxDestination.eventBus(EventBus.fromEventBusArn(scope, id, destination.eventBusArn), options)
  }
}

function queueUrl(queueArn: string): string {
  const { account, region, resource } = Arn.split(queueArn, ArnFormat.NO_RESOURCE_NAME)
  const suffix = RegionInfo.get(region ?? '').domainSuffix ?? 'amazonaws.com'
  return `https://sqs.${region ?? ''}.${suffix}/${account ?? ''}/${resource}`
}
