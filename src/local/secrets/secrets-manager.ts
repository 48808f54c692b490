import { randomUUID } from 'node:crypto'
import { ACCOUNT, REGION, errorAnswer, isObject, jsonAnswer, jsonOf, text } from '../front/protocol.js'
import { ServiceError } from '../service-error.js'
import type { LocalService } from '../service.js'
import { SecretVersions } from './version-stages.js'

/** What Secrets Manager invokes a rotation function with, once for each step. */
export interface RotationEvent {
  readonly Step: 'createSecret' | 'setSecret' | 'testSecret' | 'finishSecret'
  readonly SecretId: string
  readonly ClientRequestToken: string
}

/** Secrets Manager as far as an outbox needs it: reading, new versions with their labels, and rotation by a function. */
export interface SecretsManager extends LocalService {
  /** Makes a secret; answers its ARN. */
  create(name: string, value: string): string
  /** What a secret holds now, by name or ARN. Undefined: there is no such secret. */
  read(secretId: string): string | undefined
}

export interface SecretsManagerOptions {
  /** Runs one step of a rotation. Throws if the step failed: then the rotation ends there, and the next one takes it up again. */
  readonly rotate: (event: RotationEvent) => Promise<void>
  readonly log: (line: string) => void
}

interface Secret {
  readonly arn: string
  readonly name: string
  readonly versions: SecretVersions
  rotation: Promise<void> | undefined
}

type Body = Readonly<Record<string, unknown>>

const STEPS = ['createSecret', 'setSecret', 'testSecret', 'finishSecret'] as const

/** Secrets Manager ends every secret's ARN with six characters of its own. */
export function secretArn(name: string): string {
  return `arn:aws:secretsmanager:${REGION}:${ACCOUNT}:secret:${name}-Local1`
}

export function createSecretsManager({ rotate, log }: SecretsManagerOptions): SecretsManager {
  const secrets: Secret[] = []
  const find = (id: unknown): Secret | undefined => secrets.find(({ arn, name }) => id === arn || id === name)
  const get = (body: Body): Secret => {
    const found = find(body['SecretId'])
    if (found !== undefined) return found
    throw new ServiceError('ResourceNotFoundException', "Secrets Manager can't find the specified secret.")
  }

  const runSteps = async ({ arn }: Secret, token: string): Promise<void> => {
    try {
      for (const Step of STEPS) await rotate({ Step, SecretId: arn, ClientRequestToken: token })
    } catch (error) {
      log(`Secrets Manager: the rotation of ${arn} failed: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  const create = (name: string, value: string): string => {
    const secret: Secret = { arn: secretArn(name), name, versions: new SecretVersions(), rotation: undefined }
    secret.versions.put(randomUUID(), value, ['AWSCURRENT'])
    secrets.push(secret)
    return secret.arn
  }

  const operations: Readonly<Record<string, (body: Body) => unknown>> = {
    CreateSecret(body) {
      const name = text(body['Name'])
      const value = text(body['SecretString'])
      if (!/^[A-Za-z0-9/_+=.@-]{1,512}$/.test(name) || value === '')
        throw new ServiceError('InvalidParameterException', 'A secret needs a Name of 1 to 512 characters, and a SecretString.')
      if (find(name) !== undefined)
        throw new ServiceError('ResourceExistsException', `The operation failed because the secret ${name} already exists.`)
      const arn = create(name, value)
      return { ARN: arn, Name: name, VersionId: Object.keys(get({ SecretId: arn }).versions.list())[0] }
    },
    GetSecretValue(body) {
      const { arn, name, versions } = get(body)
      const version = versions.find({ id: optional(body['VersionId']), stage: optional(body['VersionStage']) })
      return { ARN: arn, Name: name, VersionId: version.id, SecretString: version.text, VersionStages: [...version.stages] }
    },
    PutSecretValue(body) {
      const { arn, name, versions } = get(body)
      const value = text(body['SecretString'])
      if (value === '') throw new ServiceError('InvalidRequestException', 'You must provide either SecretString or SecretBinary.')
      const stages = Array.isArray(body['VersionStages']) ? body['VersionStages'].map(text) : ['AWSCURRENT']
      const version = versions.put(optional(body['ClientRequestToken']) ?? randomUUID(), value, stages)
      return { ARN: arn, Name: name, VersionId: version.id, VersionStages: [...version.stages] }
    },
    UpdateSecretVersionStage(body) {
      const { arn, name, versions } = get(body)
      const stage = text(body['VersionStage'])
      const to = optional(body['MoveToVersionId'])
      const from = optional(body['RemoveFromVersionId'])
      const holder = Object.entries(versions.list()).find(([, stages]) => stages.includes(stage))?.[0]
      if (holder !== undefined && holder !== to && holder !== from)
        throw new ServiceError(
          'InvalidParameterException',
          `The parameter RemoveFromVersionId can't be empty. Staging label ${stage} is currently attached to version ${holder}, so you must explicitly reference that version in RemoveFromVersionId.`,
        )
      if (to !== undefined) versions.move(stage, to)
      else if (from !== undefined) versions.remove(stage, from)
      return { ARN: arn, Name: name }
    },
    DescribeSecret(body) {
      const { arn, name, versions } = get(body)
      return { ARN: arn, Name: name, RotationEnabled: true, VersionIdsToStages: versions.list() }
    },
    RotateSecret(body) {
      const secret = get(body)
      const pending = Object.entries(secret.versions.list()).find(([, stages]) => stages.includes('AWSPENDING'))
      const isDone = pending === undefined || pending[1].includes('AWSCURRENT')
      const token = isDone ? (optional(body['ClientRequestToken']) ?? randomUUID()) : pending[0]
      // one after the other, and never in the caller's time
      secret.rotation = (secret.rotation ?? Promise.resolve()).then(() => runSteps(secret, token))
      return { ARN: secret.arn, Name: secret.name, VersionId: token }
    },
  }

  return {
    handle(request) {
      const operation = (request.headers['x-amz-target'] ?? '').replace('secretsmanager.', '')
      const body = jsonOf(request)
      try {
        const run = Object.hasOwn(operations, operation) ? operations[operation] : undefined
        if (run === undefined || !isObject(body))
          throw new ServiceError(
            'InvalidRequestException',
            `the local stack has no Secrets Manager operation ${operation} for this body`,
          )
        return Promise.resolve(jsonAnswer('secretsmanager', run(body)))
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        const { name, status, message } = error
        return Promise.resolve(errorAnswer('secretsmanager', { name, status, message }))
      }
    },
    create,
    read: (secretId) => find(secretId)?.versions.find({}).text,
    stop: async () => {
      for (const { rotation } of secrets) await rotation
    },
  }
}

function optional(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
