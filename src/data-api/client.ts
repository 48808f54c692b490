import { RDSDataClient, type RDSDataClientConfig } from '@aws-sdk/client-rds-data'
import { ConfigurationError } from '../core/errors.js'

/** The Data API cancels a statement after 45 s; an answer later than this is lost. */
const requestTimeoutMs = 50_000

export type RdsDataClientOptions = Pick<RDSDataClientConfig, 'endpoint' | 'region' | 'credentials'>

/**
 * Makes the client that the executor needs: the SDK's own retries off, because they re-send a statement whose outcome is
 * unknown, and timeouts that throw (connection 3 s, request 50 s).
 *
 * Without options, endpoint, region and credentials come from where every AWS SDK takes them, `AWS_ENDPOINT_URL` and
 * `AWS_ENDPOINT_URL_RDS_DATA` included.
 *
 * @example
 * const database = createDataApiDatabase({ client: createRdsDataClient({ region: 'eu-west-1' }), ...arns })
 */
export function createRdsDataClient(options: RdsDataClientOptions = {}): RDSDataClient {
  return new RDSDataClient({
    ...options,
    maxAttempts: 1,
    requestHandler: { connectionTimeout: 3_000, requestTimeout: requestTimeoutMs, throwOnRequestTimeout: true },
  })
}

/** Refuses a client whose SDK would repeat statements behind the executor's back. */
export async function requireSingleAttempt(client: RDSDataClient): Promise<void> {
  const attempts = await client.config.maxAttempts()
  if (attempts === 1) return
  throw new ConfigurationError(
    'client',
    `client: its maxAttempts is ${attempts}, allowed is 1, because the SDK's retries re-send statements that may have run; ` +
      'make it with createRdsDataClient()',
  )
}
