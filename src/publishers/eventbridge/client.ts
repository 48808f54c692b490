import { EventBridgeClient, type EventBridgeClientConfig } from '@aws-sdk/client-eventbridge'
import { clientDefaults, type ClientSettings } from '../client-defaults.js'

/**
 * An EventBridge client as the publisher needs it: one attempt a call, timeouts that throw.
 *
 * @param overrides - region, credentials or endpoint, where the environment does not give them
 *
 * @example
 * const client = createEventBridgeClient({ requestTimeoutMs: 5000 })
 */
export function createEventBridgeClient(
  settings: ClientSettings,
  overrides: Pick<EventBridgeClientConfig, 'region' | 'credentials' | 'endpoint'> = {},
): EventBridgeClient {
  return new EventBridgeClient({ ...clientDefaults(settings), ...overrides })
}
