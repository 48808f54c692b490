import { ExecuteStatementCommand, RDSDataClient, type SqlParameter } from '@aws-sdk/client-rds-data'
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ACCOUNT, REGION } from '../../src/local/front/protocol.js'
import { startLocalStack, type LocalStackDescription } from '../../src/local/stack.js'
import { openAccount, type Account } from './account.js'
import { createCdk, credentials, type Cdk } from './cdk.js'
import type { CleanUp } from './clean-up.js'
import { freePort, startMiniStack } from './ministack.js'
import type { Program } from './program.js'
import { must } from './steps.js'

/** The database of the service. The local stack's own outbox, which it cannot do without, is in another one. */
const DATABASE = 'orders'
const CLUSTER_ARN = `arn:aws:rds:${REGION}:${ACCOUNT}:cluster:orders`

/** An account by MiniStack, with a cluster whose Data API is our server's, and the CDK's command line for both. */
export interface Site {
  readonly account: Account
  readonly cluster: { readonly clusterArn: string; readonly secretArn: string; readonly database: string }
  readonly cdk: Cdk
  readonly miniStack: Program
  readonly directory: string
  /** Writes an event as a service does, with an AWS SDK client; answers with its id. */
  write(eventType: string, destination?: string): Promise<string>
  /** The only row of a query, as its columns' texts. */
  row(sql: string, parameters?: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string | null>>>
  /** Writes a configuration, and answers with the arguments that name it. */
  configured(name: string, config: object): Promise<readonly string[]>
  readonly description: LocalStackDescription
}

export interface SiteOptions {
  readonly executable: string
  /** Whether MiniStack enforces IAM. */
  readonly iam: 'enforced' | 'ignored'
  readonly cleanUp: CleanUp
  readonly signal: AbortSignal
}

export async function openSite({ executable, iam, cleanUp, signal }: SiteOptions): Promise<Site> {
  const directory = await cleanUp.directory()
  const port = await freePort()
  const local = await startLocalStack({
    port: 0,
    relays: 0,
    log: () => undefined,
    resourceArn: CLUSTER_ARN,
    // the account's Secrets Manager has the master's secret, and those that CloudFormation makes for the functions
    secretsEndpoint: `http://127.0.0.1:${port}`,
  })
  cleanUp.add(() => local.stop())
  const { description } = local

  const { endpoint, program } = await startMiniStack({
    executable,
    directory,
    port,
    // the functions inherit it, so that the template needs no word of it
    env: { AWS_ENDPOINT_URL_RDS_DATA: description.endpoint, ...(iam === 'enforced' ? { AUTH: 'true' } : {}) },
    cleanUp,
    signal,
  })

  const client = new RDSDataClient({ endpoint: description.endpoint, region: REGION, credentials })
  const secretArn = await createSecret(endpoint, 'orders-master', { username: 'postgres', password: 'none' })
  const resourceArn = CLUSTER_ARN
  const execute = (sql: string, parameters: SqlParameter[] = [], database = DATABASE) =>
    client.send(new ExecuteStatementCommand({ resourceArn, secretArn, database, sql, parameters, formatRecordsAs: 'JSON' }))
  await execute(`CREATE DATABASE ${DATABASE}`, [], description.database)

  const row: Site['row'] = async (sql, parameters = {}) => {
    const { formattedRecords = '[]' } = await execute(
      sql,
      Object.entries(parameters).map(([name, stringValue]) => ({ name, value: { stringValue } })),
    )
    const [only] = JSON.parse(formattedRecords) as readonly Readonly<Record<string, string | null>>[]
    must(only, `no row answers ${sql}`)
    return only
  }

  return {
    account: openAccount(endpoint, signal),
    cluster: { clusterArn: resourceArn, secretArn, database: DATABASE },
    cdk: createCdk({ endpoint, directory, iam, signal }),
    miniStack: program,
    directory,
    description,
    row,
    async write(eventType, destination) {
      const { records } = await client.send(
        new ExecuteStatementCommand({
          resourceArn,
          secretArn,
          database: DATABASE,
          sql: `INSERT INTO outbox (event_type, payload, destination) VALUES (:type, :payload, :destination) RETURNING id::text`,
          parameters: [
            { name: 'type', value: { stringValue: eventType } },
            { name: 'payload', value: { stringValue: '{"orderId": 42}' } },
            { name: 'destination', value: destination === undefined ? { isNull: true } : { stringValue: destination } },
          ],
        }),
      )
      const id = records?.[0]?.[0]?.stringValue
      must(id, 'the INSERT returned no id')
      return id
    },
    async configured(name, config) {
      const file = path.join(directory, `${name}.json`)
      await writeFile(file, JSON.stringify(config, undefined, 2))
      return ['-c', `config=${file}`]
    },
  }
}

async function createSecret(endpoint: string, name: string, value: object): Promise<string> {
  const client = new SecretsManagerClient({ endpoint, region: REGION, credentials })
  const { ARN } = await client.send(new CreateSecretCommand({ Name: name, SecretString: JSON.stringify(value) }))
  must(ARN, `the secret ${name} got no ARN`)
  return ARN
}
