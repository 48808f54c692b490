import { GetSecretValueCommand } from '@aws-sdk/client-secrets-manager'
import { ConfigurationError } from '../../core/errors.js'
import { createSecretsManagerClient } from '../../secrets/client.js'
import { REGION } from '../front/protocol.js'

/** Secrets that another Secrets Manager holds: a real one's emulator, for functions that are deployed there. */
export interface RemoteSecrets {
  /** Undefined: there is no such secret. */
  read(secretArn: string): Promise<string | undefined>
  stop(): void
}

/**
 * Credentials as every AWS SDK finds them; any if there are none, which will do for an emulator that checks none.
 *
 * @throws ConfigurationError if the endpoint is no URL.
 */
export function createRemoteSecrets(endpoint: string): RemoteSecrets {
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) {
    const allowed = 'a URL, as http://127.0.0.1:4600'
    throw new ConfigurationError('secretsEndpoint', `secretsEndpoint is "${endpoint}"; allowed: ${allowed}`)
  }
  const { AWS_REGION: region = REGION, AWS_ACCESS_KEY_ID: accessKeyId } = process.env
  const any = { accessKeyId: 'local', secretAccessKey: 'local' }
  const client = createSecretsManagerClient({
    endpoint,
    region,
    ...(accessKeyId === undefined ? { credentials: any } : {}),
  })
  return {
    async read(secretArn) {
      try {
        return (await client.send(new GetSecretValueCommand({ SecretId: secretArn }))).SecretString
      } catch (error) {
        if ((error as Error).name === 'ResourceNotFoundException') return undefined
        throw error
      }
    },
    stop: () => client.destroy(),
  }
}
