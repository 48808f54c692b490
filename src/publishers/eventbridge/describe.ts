import { DescribeEventBusCommand, type EventBridgeClient } from '@aws-sdk/client-eventbridge'
import { OutboxError } from '../../core/errors.js'
import { accountIn } from '../account.js'
import type { Description } from '../destination-check.js'

/**
 * What a bus says of itself: its ARN. Throws what the client throws, and for a bus of another account `OtherAccount`:
 * EventBridge describes a bus "in your account", so its answer would not be about that bus.
 */
export async function describeBus(
  client: Pick<EventBridgeClient, 'send'>,
  bus: string,
  ownAccount: string | undefined,
  abortSignal: AbortSignal,
): Promise<Description> {
  const account = accountIn(bus)
  if (account !== undefined && ownAccount !== undefined && account !== ownAccount) {
    throw new OutboxError(
      'OtherAccount',
      `the bus is of account ${account}, and EventBridge describes to account ${ownAccount} its own buses alone`,
    )
  }
  // of its own account by its name: not all that speak EventBridge's API know a bus by its ARN here
  const name = account === undefined || account !== ownAccount ? bus : bus.replace(/^.*:event-bus\//, '')
  const { Arn } = await client.send(new DescribeEventBusCommand({ Name: name }), { abortSignal })
  return { arn: Arn, maxBytes: undefined }
}
