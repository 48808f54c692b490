import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import type { DatabaseUser, UserRole } from '../core/database-user.js'
import { OutboxError } from '../core/errors.js'
import { parseLogin, type Login } from './login.js'
import { isPlainPassword, scramVerifier } from './scram.js'

/** Which function's user a secret is for: role -> ARN. */
export type UserSecrets = Readonly<Partial<Record<UserRole, string>>>

/** One version of a secret. Default: the current one. */
export interface SecretVersion {
  readonly VersionId?: string
  readonly VersionStage?: 'AWSCURRENT' | 'AWSPENDING'
}

/** The users that the secrets name, each with the verifier of its password. @throws OutboxError as `readLogin` does */
export async function readUsers(client: SecretsManagerClient, secrets: UserSecrets): Promise<readonly DatabaseUser[]> {
  const wanted = Object.entries(secrets) as [UserRole, string][]
  return Promise.all(wanted.map(async ([role, arn]) => userOf(role, (await readLogin(client, role, arn)).login)))
}

export function userOf(role: UserRole, { username, password }: Login): DatabaseUser {
  return { role, name: username, verifier: scramVerifier(password) }
}

/**
 * Reads a user's secret.
 *
 * @throws OutboxError `SecretUnreadable` or `SecretInvalid`, which name the secret and never quote it
 */
export async function readLogin(
  client: SecretsManagerClient,
  role: UserRole,
  arn: string,
  version: SecretVersion = {},
): Promise<{ readonly login: Login; readonly versionId: string }> {
  const answer = await client.send(new GetSecretValueCommand({ SecretId: arn, ...version })).catch((cause: unknown) => {
    const { name, message } = cause as Error
    throw new OutboxError(
      'SecretUnreadable',
      `the secret of the ${role}'s database user cannot be read: ${arn}: ${name}: ${message}`,
      {
        cause,
      },
    )
  })
  const login = parseLogin(answer.SecretString ?? '')
  if (login === undefined || !isPlainPassword(login.password)) {
    const wanted = 'JSON with "username", and "password" of printable ASCII characters'
    throw new OutboxError('SecretInvalid', `the secret of the ${role}'s database user is not ${wanted}: ${arn}`)
  }
  return { login, versionId: answer.VersionId ?? '' }
}
