import { SNSClient, type SNSClientConfig } from '@aws-sdk/client-sns'
import { clientDefaults, type ClientSettings } from '../client-defaults.js'

/**
 * An SNS client as the publisher needs it: one attempt a call, timeouts that throw.
 *
 * @param overrides - region, credentials or endpoint, where the environment does not give them
 *
 * @example
 * const client = createSnsClient({ requestTimeoutMs: 5000 })
 */
export function createSnsClient(
  settings: ClientSettings,
  overrides: Pick<SNSClientConfig, 'region' | 'credentials' | 'endpoint'> = {},
): SNSClient {
  return new SNSClient({ ...clientDefaults(settings), ...overrides })
}
