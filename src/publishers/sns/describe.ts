import { GetTopicAttributesCommand, type SNSClient } from '@aws-sdk/client-sns'
import type { Description } from '../destination-check.js'
import { parseBytes, SIZE_ATTRIBUTE } from '../size-attribute.js'

/** What a topic says of itself: its ARN, and the bytes it takes in a message and in a batch. Throws what the client throws. */
export async function describeTopic(
  client: Pick<SNSClient, 'send'>,
  topicArn: string,
  abortSignal: AbortSignal,
): Promise<Description> {
  const { Attributes } = await client.send(new GetTopicAttributesCommand({ TopicArn: topicArn }), { abortSignal })
  return { arn: Attributes?.['TopicArn'], maxBytes: parseBytes(Attributes?.[SIZE_ATTRIBUTE]) }
}
