import {
  BatchExecuteStatementCommand,
  BeginTransactionCommand,
  CommitTransactionCommand,
  ExecuteStatementCommand,
  RDSDataClient,
  RollbackTransactionCommand,
  type BatchExecuteStatementCommandInput,
  type ExecuteStatementCommandInput,
  type ExecuteStatementCommandOutput,
  type Field,
  type SqlParameter,
} from '@aws-sdk/client-rds-data'
import { afterAll } from 'vitest'
import type { TestDataApi } from './data-api.js'

type Execute = Partial<ExecuteStatementCommandInput>
type Batch = Partial<BatchExecuteStatementCommandInput>

export interface DataApiClient {
  readonly execute: (sql: string, input?: Execute) => Promise<ExecuteStatementCommandOutput>
  /** The only field of the only row. */
  readonly value: (sql: string, input?: Execute) => Promise<Field | undefined>
  readonly batch: (sql: string, input?: Batch) => Promise<unknown>
  readonly begin: () => Promise<string>
  readonly commit: (transactionId: string) => Promise<string | undefined>
  readonly rollback: (transactionId: string) => Promise<string | undefined>
}

export interface Failure {
  readonly name: string
  readonly message: string
  readonly status: number | undefined
  readonly dbConnectionId?: number
}

/** The AWS SDK's own client, without retries. */
export function dataApiClient(api: TestDataApi): DataApiClient {
  const client = new RDSDataClient({ ...api.clientConfig, maxAttempts: 1 })
  afterAll(() => client.destroy())
  const { resourceArn, secretArn, database } = api
  const place = { resourceArn, secretArn, database }
  const execute = (sql: string, input: Execute = {}) => client.send(new ExecuteStatementCommand({ ...place, sql, ...input }))
  return {
    execute,
    value: async (sql, input) => (await execute(sql, input)).records?.[0]?.[0],
    batch: (sql, input) => client.send(new BatchExecuteStatementCommand({ ...place, sql, ...input })),
    begin: async () => (await client.send(new BeginTransactionCommand(place))).transactionId ?? '',
    commit: async (transactionId) =>
      (await client.send(new CommitTransactionCommand({ resourceArn, secretArn, transactionId }))).transactionStatus,
    rollback: async (transactionId) =>
      (await client.send(new RollbackTransactionCommand({ resourceArn, secretArn, transactionId }))).transactionStatus,
  }
}

/** What a call that must fail failed with. */
export async function failure(call: Promise<unknown>): Promise<Failure> {
  try {
    await call
  } catch (error) {
    const { name, message, $metadata, dbConnectionId } = error as Error & {
      $metadata?: { httpStatusCode?: number }
      dbConnectionId?: number
    }
    return { name, message, status: $metadata?.httpStatusCode, ...(dbConnectionId === undefined ? {} : { dbConnectionId }) }
  }
  throw new Error('the call succeeded')
}

/** A named parameter with its value in wire form. */
export function parameter(name: string, value: Field, typeHint?: SqlParameter['typeHint']): SqlParameter {
  return { name, value, typeHint }
}
