import { RemovalPolicy, Stack } from 'aws-cdk-lib'
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions'
import type { Construct } from 'constructs'

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
