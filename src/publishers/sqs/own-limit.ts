import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs'
import { parseBytes, SIZE_ATTRIBUTE } from '../own-limits.js'

/** Bytes that a queue takes in a message, and in a batch, by its own attribute. Throws what the client throws. */
export async function readQueueBytes(
  client: Pick<SQSClient, 'send'>,
  queueUrl: string,
  abortSignal: AbortSignal,
): Promise<number | undefined> {
  const command = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [SIZE_ATTRIBUTE] })
  const { Attributes } = await client.send(command, { abortSignal })
  return parseBytes(Attributes?.[SIZE_ATTRIBUTE])
}
