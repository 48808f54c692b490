import {
  PutSecretValueCommand,
  UpdateSecretVersionStageCommand,
  type SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { alternateName, type DatabaseUser, type UserRole } from '../core/database-user.js'
import { ConfigurationError, OutboxError } from '../core/errors.js'
import { newPassword } from './scram.js'
import { readLogin, userOf, type UserSecrets } from './user-secrets.js'

const steps = ['createSecret', 'setSecret', 'testSecret', 'finishSecret'] as const

/** What Secrets Manager invokes a rotation function with. */
export interface RotationStep {
  readonly Step: (typeof steps)[number]
  readonly SecretId: string
  readonly ClientRequestToken: string
}

export interface Rotation {
  readonly client: SecretsManagerClient
  readonly secrets: UserSecrets
  /** Makes the user, or gives it the password. */
  readonly make: (user: DatabaseUser) => Promise<void>
  /** Throws unless the user can log in and has its rights. */
  readonly check: (user: DatabaseUser) => Promise<void>
}

export function isRotationStep(event: unknown): event is RotationStep {
  const { Step, SecretId, ClientRequestToken } = (event ?? {}) as Partial<Record<keyof RotationStep, unknown>>
  return steps.some((step) => step === Step) && typeof SecretId === 'string' && typeof ClientRequestToken === 'string'
}

/**
 * One step of a rotation by two users who take turns. Until the last step the current user is untouched, and after it the
 * one before still has its password: there is no moment at which a function cannot log in, and a rotation that fails
 * anywhere changes nothing for anybody. Every step may be repeated.
 *
 * @throws ConfigurationError for a secret that is none of these users'; OutboxError if a secret cannot be read or changed
 */
export async function rotate(
  step: RotationStep,
  rotation: Rotation,
): Promise<{ readonly role: UserRole; readonly user: string }> {
  const { client } = rotation
  const { SecretId, ClientRequestToken } = step
  const role = roleOf(step, rotation.secrets)
  const pending = { VersionId: ClientRequestToken, VersionStage: 'AWSPENDING' } as const

  if (step.Step === 'createSecret') {
    const known = await readLogin(client, role, SecretId, pending).catch((error: unknown) => {
      if (error instanceof OutboxError && (error.cause as Error | undefined)?.name === 'ResourceNotFoundException')
        return undefined
      throw error
    })
    if (known !== undefined) return { role, user: known.login.username }
    const { login } = await readLogin(client, role, SecretId)
    const next = { username: alternateName(login.username), password: newPassword() }
    const SecretString = JSON.stringify(next)
    const put = new PutSecretValueCommand({ SecretId, ClientRequestToken, SecretString, VersionStages: ['AWSPENDING'] })
    await client.send(put).catch((cause: unknown) => unwritable(role, SecretId, cause))
    return { role, user: next.username }
  }

  const { login } = await readLogin(client, role, SecretId, pending)
  if (step.Step === 'setSecret') await rotation.make(userOf(role, login))
  if (step.Step === 'testSecret') await rotation.check(userOf(role, login))
  if (step.Step === 'finishSecret') {
    const { versionId } = await readLogin(client, role, SecretId)
    if (versionId !== ClientRequestToken) {
      const move = { MoveToVersionId: ClientRequestToken, RemoveFromVersionId: versionId }
      const update = new UpdateSecretVersionStageCommand({ SecretId, VersionStage: 'AWSCURRENT', ...move })
      await client.send(update).catch((cause: unknown) => unwritable(role, SecretId, cause))
    }
  }
  return { role, user: login.username }
}

function unwritable(role: UserRole, arn: string, cause: unknown): never {
  const { name, message } = cause as Error
  throw new OutboxError(
    'SecretUnwritable',
    `the secret of the ${role}'s database user cannot be changed: ${arn}: ${name}: ${message}`,
    {
      cause,
    },
  )
}

function roleOf({ SecretId }: RotationStep, secrets: UserSecrets): UserRole {
  const found = (Object.entries(secrets) as [UserRole, string][]).find(([, arn]) => arn === SecretId)
  if (found !== undefined) return found[0]
  const known = Object.values(secrets).join(', ')
  throw new ConfigurationError(
    'SecretId',
    `SecretId is "${SecretId}", which is no database user's secret here; allowed: ${known || 'none'}`,
  )
}
