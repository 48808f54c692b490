import { Duration, Validations } from 'aws-cdk-lib'
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs'
import type { Construct } from 'constructs'

/**
 * Keeps the invocations that failed, with their reasons, for whoever looks into it; for as long as SQS can. They carry no
 * event of the outbox.
 */
export function createFailedInvocations(scope: Construct, id: string): Queue {
  const queue = new Queue(scope, id, {
    encryption: QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: Duration.days(14),
  })
  Validations.of(queue).acknowledge({
    id: 'AwsSolutions-SQS3',
    reason: 'It is a dead-letter queue itself: nothing consumes it, so no message of it ever fails.',
  })
  return queue
}
