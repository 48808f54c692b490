import {
  CreateSecretCommand,
  DescribeSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  RotateSecretCommand,
  SecretsManagerClient,
  UpdateSecretVersionStageCommand,
} from '@aws-sdk/client-secrets-manager'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEndpoint, type Endpoint } from '../../src/local/endpoint/endpoint.js'
import { createSecretsManager, type RotationEvent } from '../../src/local/secrets/secrets-manager.js'
import { sdkOptions } from '../support/local-services.js'

let endpoint: Endpoint
let client: SecretsManagerClient
const steps: RotationEvent[] = []
const lines: string[] = []
let rotate: (event: RotationEvent) => Promise<void> = () => Promise.resolve()
const secrets = createSecretsManager({
  rotate: (event) => {
    steps.push(event)
    return rotate(event)
  },
  log: (line) => lines.push(line),
})
beforeAll(async () => {
  endpoint = await startEndpoint(0, (request) => secrets.handle(request))
  client = new SecretsManagerClient(sdkOptions(endpoint.url))
})
afterAll(async () => {
  client.destroy()
  await endpoint.stop()
  await secrets.stop()
})

const get = (SecretId: string, more: { readonly VersionId?: string; readonly VersionStage?: string } = {}) =>
  client.send(new GetSecretValueCommand({ SecretId, ...more }))
const put = (SecretId: string, SecretString: string, more: { ClientRequestToken?: string; VersionStages?: string[] } = {}) =>
  client.send(new PutSecretValueCommand({ SecretId, SecretString, ...more }))
const token = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`

describe('the local Secrets Manager, to the SDK', () => {
  it('gives a secret by its name or its ARN', async () => {
    const arn = secrets.create('one', 'first')
    expect(arn).toMatch(/^arn:aws:secretsmanager:us-east-1:000000000000:secret:one-\w{6}$/)
    expect(await get('one')).toMatchObject({ ARN: arn, Name: 'one', SecretString: 'first', VersionStages: ['AWSCURRENT'] })
    expect(await get(arn)).toMatchObject({ SecretString: 'first' })
  })

  it('makes one that is not there yet', async () => {
    const make = () => client.send(new CreateSecretCommand({ Name: 'made', SecretString: 'first' }))
    expect((await make()).ARN).toBe((await get('made')).ARN)
    await expect(make()).rejects.toMatchObject({ name: 'ResourceExistsException' })
  })

  it('says which secret or version is not there, by the name that AWS has for it', async () => {
    await expect(get('nothing')).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
      message: "Secrets Manager can't find the specified secret.",
    })
    secrets.create('alone', 'first')
    await expect(get('alone', { VersionStage: 'AWSPENDING' })).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
      message: "Secrets Manager can't find the specified secret value for staging label: AWSPENDING",
    })
  })

  it('keeps the version before the current one as the previous, and forgets those that no label names', async () => {
    secrets.create('turns', 'first')
    await put('turns', 'second', { ClientRequestToken: token(2) })
    await put('turns', 'third', { ClientRequestToken: token(3) })
    expect(await get('turns')).toMatchObject({ SecretString: 'third' })
    expect(await get('turns', { VersionStage: 'AWSPREVIOUS' })).toMatchObject({ SecretString: 'second' })
    const { VersionIdsToStages } = await client.send(new DescribeSecretCommand({ SecretId: 'turns' }))
    expect(VersionIdsToStages).toEqual({ [token(2)]: ['AWSPREVIOUS'], [token(3)]: ['AWSCURRENT'] })
  })

  it('takes a version once: the same again changes nothing, another under its id is refused', async () => {
    secrets.create('once', 'first')
    const pending = { ClientRequestToken: token(4), VersionStages: ['AWSPENDING'] }
    await put('once', 'next', pending)
    await put('once', 'next', pending)
    await expect(put('once', 'other', pending)).rejects.toMatchObject({ name: 'ResourceExistsException' })
    expect(await get('once')).toMatchObject({ SecretString: 'first' })
    expect(await get('once', { VersionId: token(4), VersionStage: 'AWSPENDING' })).toMatchObject({ SecretString: 'next' })
  })

  it('moves a label only from the version that the caller says has it', async () => {
    secrets.create('moved', 'first')
    const { VersionId: first } = await get('moved')
    await put('moved', 'next', { ClientRequestToken: token(5), VersionStages: ['AWSPENDING'] })
    const move = { SecretId: 'moved', VersionStage: 'AWSCURRENT', MoveToVersionId: token(5) }
    await expect(client.send(new UpdateSecretVersionStageCommand(move))).rejects.toMatchObject({
      name: 'InvalidParameterException',
    })
    await client.send(new UpdateSecretVersionStageCommand({ ...move, RemoveFromVersionId: first }))
    expect(await get('moved')).toMatchObject({ SecretString: 'next' })
    expect(await get('moved', { VersionStage: 'AWSPREVIOUS' })).toMatchObject({ SecretString: 'first' })
  })

  it('rotates in four steps under one token, and takes an unfinished rotation up again', async () => {
    const arn = secrets.create('rotated', 'first')
    rotate = async ({ Step, ClientRequestToken }) => {
      if (Step === 'createSecret') await put(arn, 'next', { ClientRequestToken, VersionStages: ['AWSPENDING'] })
      if (Step === 'setSecret') throw new Error('the database is away')
    }
    const run = async () => (await client.send(new RotateSecretCommand({ SecretId: 'rotated' }))).VersionId
    const first = await run()
    await expect.poll(() => lines.join()).toContain(`the rotation of ${arn} failed: the database is away`)
    expect(steps.map(({ Step }) => Step)).toEqual(['createSecret', 'setSecret'])

    rotate = () => Promise.resolve()
    expect(await run()).toBe(first)
    await expect.poll(() => steps.length).toBe(6)
    expect(steps.slice(2)).toEqual(
      ['createSecret', 'setSecret', 'testSecret', 'finishSecret'].map((Step) => ({
        Step,
        SecretId: arn,
        ClientRequestToken: first,
      })),
    )
  })
})
