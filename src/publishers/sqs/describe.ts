import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs'
import type { Description } from '../destination-check.js'
import { parseBytes, SIZE_ATTRIBUTE } from '../size-attribute.js'

/** What a queue says of itself: its ARN, and the bytes it takes in a message and in a batch. Throws what the client throws. */
export async function describeQueue(
  client: Pick<SQSClient, 'send'>,
  queueUrl: string,
  abortSignal: AbortSignal,
): Promise<Description> {
  const command = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [SIZE_ATTRIBUTE, 'QueueArn'] })
  const { Attributes } = await client.send(command, { abortSignal })
  return { arn: Attributes?.['QueueArn'], maxBytes: parseBytes(Attributes?.[SIZE_ATTRIBUTE]) }
}
