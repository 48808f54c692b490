import { GetTopicAttributesCommand, type SNSClient } from '@aws-sdk/client-sns'
import { parseBytes, SIZE_ATTRIBUTE } from '../own-limits.js'

/** Bytes that a topic takes in a message, and in a batch, by its own attribute. Throws what the client throws. */
export async function readTopicBytes(
  client: Pick<SNSClient, 'send'>,
  topicArn: string,
  abortSignal: AbortSignal,
): Promise<number | undefined> {
  const { Attributes } = await client.send(new GetTopicAttributesCommand({ TopicArn: topicArn }), { abortSignal })
  return parseBytes(Attributes?.[SIZE_ATTRIBUTE])
}
