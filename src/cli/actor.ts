import { OutboxError } from '../core/errors.js'
import type { Connection } from './connection.js'

/**
 * The ARN of whoever runs the command, as STS knows the credentials in use: nobody can give another one. The client is loaded
 * here alone, so that commands which change nothing do without it.
 *
 * @throws OutboxError if STS answers without an ARN; else what the SDK throws
 */
export async function callerArn({ resourceArn }: Connection): Promise<string> {
  const { GetCallerIdentityCommand, STSClient } = await import('@aws-sdk/client-sts')
  const region = resourceArn.split(':')[3]
  const client = new STSClient({
    ...(region === undefined || region === '' ? {} : { region }),
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
  })
  try {
    const { Arn } = await client.send(new GetCallerIdentityCommand({}))
    if (Arn === undefined) throw new OutboxError('NoIdentity', 'STS did not say who runs this command, and the audit needs it')
    return Arn
  } finally {
    client.destroy()
  }
}
