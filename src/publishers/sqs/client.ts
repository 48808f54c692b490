import { SQSClient, type SQSClientConfig } from '@aws-sdk/client-sqs'
import { clientDefaults, type ClientSettings } from '../client-defaults.js'

/**
 * An SQS client as the publisher needs it: one attempt a call, timeouts that throw.
 *
 * The queue's URL names the queue and nothing else: where requests go is a matter of the region or the standard endpoint
 * variables, which the SDK would otherwise override with the URL's host. And digests of the service's answer are not
 * checked: the SDK checks them after the messages are sent, and throws for all of them; TLS guards the way.
 *
 * @param overrides - region, credentials or endpoint, where the environment does not give them
 *
 * @example
 * const client = createSqsClient({ requestTimeoutMs: 5000 })
 */
export function createSqsClient(
  settings: ClientSettings,
  overrides: Pick<SQSClientConfig, 'region' | 'credentials' | 'endpoint'> = {},
): SQSClient {
  return new SQSClient({ ...clientDefaults(settings), useQueueUrlAsEndpoint: false, md5: false, ...overrides })
}
