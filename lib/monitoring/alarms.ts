import { type Duration, RemovalPolicy, Stack } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Key } from 'aws-cdk-lib/aws-kms'
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns'
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions'
import type { Construct } from 'constructs'
import { outboxMetric } from './metrics.js'

/**
 * A topic that CloudWatch's alarms can publish to: encrypted with a key of its own, since the managed key of SNS refuses
 * CloudWatch, and open to alarms of this account alone.
 */
export function createAlarmTopic(scope: Construct, id: string, options: { readonly email?: string | undefined }): Topic {
  const ofThisAccount = {
    StringEquals: { 'aws:SourceAccount': Stack.of(scope).account },
    ArnLike: { 'aws:SourceArn': Stack.of(scope).formatArn({ service: 'cloudwatch', resource: 'alarm:*' }) },
  }
  const cloudWatch = new ServicePrincipal('cloudwatch.amazonaws.com')

  const key = new Key(scope, `${id}Key`, {
    description: 'Seals alarm notifications of an outbox relay',
    enableKeyRotation: true,
    // it seals notifications on their way, nothing that is kept
    removalPolicy: RemovalPolicy.DESTROY,
  })
  // `*` in a key's policy means that key
  key.addToResourcePolicy(
    new PolicyStatement({
      principals: [cloudWatch],
      actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
      resources: ['*'],
      conditions: ofThisAccount,
    }),
  )

  const topic = new Topic(scope, id, { masterKey: key, enforceSSL: true })
  // enforceSSL brings a policy, and a policy replaces the one that lets the account's services publish
  topic.addToResourcePolicy(
    new PolicyStatement({
      principals: [cloudWatch],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: ofThisAccount,
    }),
  )
  if (options.email !== undefined) topic.addSubscription(new EmailSubscription(options.email))
  return topic
}

export interface BacklogAgeAlarmProps {
  readonly installation: string
  readonly topic: ITopic
  readonly threshold: Duration
  /** One measurement of the monitor per period. */
  readonly period: Duration
}

/** Events wait too long, or nobody measures whether they do. */
export function backlogAgeAlarm(scope: Construct, id: string, props: BacklogAgeAlarmProps): Alarm {
  const { installation, threshold, period } = props
  const alarm = new Alarm(scope, id, {
    alarmDescription:
      `Outbox ${installation}: the oldest undelivered event has been due for more than ${threshold.toSeconds()} s, ` +
      'or the monitor has stopped measuring. No event is lost while this lasts. ' +
      'First command: npx aurora-outbox-relay status. Then docs/runbook.md, section "Backlog age".',
    metric: outboxMetric('BacklogAge', installation, { statistic: Stats.MAXIMUM, period }),
    threshold: threshold.toSeconds(),
    comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
    evaluationPeriods: 5,
    datapointsToAlarm: 3,
    // the monitor measures 0 when nothing waits: silence is a fault of its own
    treatMissingData: TreatMissingData.BREACHING,
  })
  const notify = new SnsAction(props.topic)
  alarm.addAlarmAction(notify)
  alarm.addOkAction(notify)
  return alarm
}
