import { SecretsManagerClient, type SecretsManagerClientConfig } from '@aws-sdk/client-secrets-manager'

/** Without options, endpoint, region and credentials come from where every AWS SDK takes them. A call that hangs is given up after 5 s. */
export function createSecretsManagerClient(
  options: Pick<SecretsManagerClientConfig, 'endpoint' | 'region' | 'credentials'> = {},
): SecretsManagerClient {
  return new SecretsManagerClient({
    ...options,
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
  })
}
