import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDataApi, type DataApi } from '../../src/local/data-api/data-api.js'
import { startEndpoint, type Endpoint } from '../../src/local/endpoint/endpoint.js'
import { createRemoteSecrets } from '../../src/local/secrets/remote.js'
import { createSecretsManager } from '../../src/local/secrets/secrets-manager.js'
import { freshDatabase } from '../support/postgres.js'

const resourceArn = 'arn:aws:rds:eu-central-1:111122223333:cluster:orders'
const secrets = createSecretsManager({ rotate: () => Promise.resolve(), log: () => undefined })
let endpoint: Endpoint
let dataApi: DataApi
let remote: ReturnType<typeof createRemoteSecrets>
let database: string

beforeAll(async () => {
  const db = await freshDatabase('secrets')
  database = db.name
  endpoint = await startEndpoint(0, (request) => secrets.handle(request))
  remote = createRemoteSecrets(endpoint.url)
  const { hostname: host, port } = new URL(db.url())
  dataApi = createDataApi({ server: { host, port: Number(port) }, resourceArn, readSecret: (arn) => remote.read(arn) })
})
afterAll(async () => {
  await dataApi.stop()
  remote.stop()
  await endpoint.stop()
})

async function select(secretArn: string) {
  const body = Buffer.from(JSON.stringify({ resourceArn, secretArn, database, sql: 'SELECT current_user::text' }))
  const answer = await dataApi.handle({ method: 'POST', path: '/Execute', headers: { authorization: 'any' }, body })
  return { fault: answer.headers['x-amzn-errortype'], ...(JSON.parse(answer.body.toString()) as object) }
}

describe('the Data API with the secrets of another Secrets Manager', () => {
  it('logs in as the user that the secret names', async () => {
    const arn = secrets.create('owner', '{"username":"postgres","password":"any","engine":"postgres"}')
    expect(await select(arn)).toMatchObject({ records: [[{ stringValue: 'postgres' }]] })
  })

  it('says that a secret is not there, is not a login, or cannot be read', async () => {
    expect(await select(`${resourceArn}-none`)).toMatchObject({ fault: 'SecretsErrorException' })
    const arn = secrets.create('half', '{"username":"postgres"}')
    const answer = await select(arn)
    expect(answer).toMatchObject({ fault: 'InvalidSecretException' })
    expect(JSON.stringify(answer)).not.toContain('postgres"')
    await endpoint.stop()
    expect(await select(arn)).toMatchObject({ fault: 'SecretsErrorException' })
  })

  it('refuses an endpoint that is no URL, in one line', () => {
    expect(() => createRemoteSecrets('localhost:4600')).toThrow('secretsEndpoint is "localhost:4600"; allowed: a URL')
  })
})
