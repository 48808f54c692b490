import { randomUUID } from 'node:crypto'
import { devNull } from 'node:os'
import { REGION } from '../front/protocol.js'

/** Megabytes, as the stack gives its functions. */
const MEMORY_MB = 256

/** What Lambda itself puts into a function's environment, with the local endpoint for every AWS service. */
export function lambdaEnvironment(functionName: string, endpointUrl: string): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    TZ: ':UTC',
    AWS_ENDPOINT_URL: endpointUrl,
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    // nothing of this computer's own AWS configuration may reach a function
    AWS_CONFIG_FILE: devNull,
    AWS_SHARED_CREDENTIALS_FILE: devNull,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_LAMBDA_FUNCTION_NAME: functionName,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(MEMORY_MB),
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${functionName}`,
    AWS_LAMBDA_LOG_STREAM_NAME: `local/[$LATEST]${randomUUID().replaceAll('-', '')}`,
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    // the runtime of the account is newer than this computer's may be
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
    _HANDLER: 'index.handler',
  }
}
