/** Where statements are sent, for messages that say what to check. None of it is secret. */
export interface Target {
  readonly resourceArn: string
  readonly secretArn: string
  readonly database: string
}

/**
 * One line: the error's name and SQLSTATE, what the service said without any value of a row or a parameter, and what to do.
 */
export function failureMessage(errorName: string, sqlState: string | undefined, said: string, target: Target): string {
  const head = sqlState === undefined ? errorName : `${errorName} ${sqlState}`
  const text = withoutValues(said, sqlState)
  const advice = adviceFor(errorName, sqlState, target)
  return `${text === '' || text === 'UnknownError' || text === errorName ? head : `${head}: ${text}`}${advice === undefined ? '' : `; ${advice}`}`
}

/** PostgreSQL repeats rows and values in Detail, Hint, Where and, for data exceptions (class 22), behind the message's colon. */
function withoutValues(said: string, sqlState: string | undefined): string {
  const firstLine = said.trim().split(/[\r\n]/, 1)[0] ?? ''
  const primary = firstLine
    .replace(/\s+/g, ' ')
    .replace(/^ERROR: /, '')
    .replace(/;? ?\b(Detail|Hint|Where|Context|Position|Query|SQLState|Error code): .*$/i, '')
  return (sqlState?.startsWith('22') === true ? primary.replace(/[:"'].*$/, '') : primary).slice(0, 500).trimEnd()
}

function adviceFor(errorName: string, sqlState: string | undefined, target: Target): string | undefined {
  switch (sqlState ?? '') {
    case '42P01':
    case '42883':
    case '3F000':
      return `if it is the outbox's or the inbox's own, migrate database "${target.database}" first, and check the schema setting`
    case '42501':
      return `the user of secret ${target.secretArn} lacks a right: grant it the outbox role for its part`
    case '42804':
      return 'strings travel as text and integers as bigint: cast them in the SQL, e.g. CAST(:id AS uuid)'
    case '28P01':
    case '28000':
      return `check user and password in secret ${target.secretArn}`
    case '3D000':
      return `check the database name "${target.database}"`
    default:
      return adviceByName(errorName, target)
  }
}

function adviceByName(errorName: string, target: Target): string | undefined {
  switch (errorName) {
    case 'HttpEndpointNotEnabledException':
      return `check the cluster ARN ${target.resourceArn}, and that the cluster's Data API is enabled`
    case 'DatabaseNotFoundException':
    case 'NotFoundException':
      return `check the cluster ARN ${target.resourceArn}, and that the cluster has an instance`
    case 'SecretsErrorException':
    case 'InvalidSecretException':
      return `check that secret ${target.secretArn} exists, can be decrypted, and holds username and password`
    case 'AccessDeniedException':
    case 'ForbiddenException':
      return `allow rds-data actions on ${target.resourceArn} and secretsmanager:GetSecretValue on ${target.secretArn}`
    case 'CredentialsProviderError':
    case 'UnrecognizedClientException':
    case 'InvalidSignatureException':
      return 'check the AWS credentials'
    default:
      return undefined
  }
}
