import { ExecuteStatementCommand, type ExecuteStatementCommandOutput, type RDSDataClient } from '@aws-sdk/client-rds-data'
import type { Clock, Random } from '../core/clock.js'
import { deadlineAfter, type Deadline } from '../core/deadline.js'
import type { SqlFailureKind } from '../core/errors.js'
import type { SqlResult, SqlStatement } from '../core/ports.js'
import { requireSingleAttempt } from './client.js'
import type { Target } from './failure-message.js'
import { encodeParameters } from './parameters.js'
import { sendUntilAnswered, type OnCall, type Sent } from './retry.js'
import { decodeRows } from './rows.js'

/** After these failures nothing of the call is there. */
export const untouched: readonly SqlFailureKind[] = ['not-executed', 'rolled-back']
export const anyTransient: readonly SqlFailureKind[] = [...untouched, 'ambiguous']

interface CallPolicy {
  /** Failures after which the same call is sent again. */
  readonly again: readonly SqlFailureKind[]
  readonly deadline: Deadline | undefined
}

/** One client, cluster, secret and database, and how calls to them are sent. */
export interface Connection {
  readonly client: RDSDataClient
  readonly clock: Clock
  readonly random: Random
  readonly arns: { readonly resourceArn: string; readonly secretArn: string }
  readonly database: string
  send<Answer>(call: (abortSignal: AbortSignal) => Promise<Answer>, policy: CallPolicy): Promise<Sent<Answer>>
  execute(statement: SqlStatement, policy: CallPolicy & { readonly transactionId?: string }): Promise<SqlResult>
}

interface ConnectionOptions {
  readonly clock: Clock
  readonly random: Random
  readonly defaultDeadlineMs: number
  readonly onCall: OnCall | undefined
}

export function connect(
  client: RDSDataClient,
  target: Target,
  { clock, random, defaultDeadlineMs, onCall }: ConnectionOptions,
): Connection {
  const { database, ...arns } = target

  const send: Connection['send'] = async (call, { again, deadline }) => {
    await requireSingleAttempt(client)
    return sendUntilAnswered(call, {
      clock,
      random,
      deadline: deadline ?? deadlineAfter(clock, defaultDeadlineMs),
      again,
      target,
      onCall,
    })
  }

  const execute: Connection['execute'] = async (statement, { transactionId, ...policy }) => {
    const command = new ExecuteStatementCommand({
      ...arns,
      database,
      sql: statement.sql,
      parameters: encodeParameters(statement.parameters),
      includeResultMetadata: true,
      resultSetOptions: { longReturnType: 'STRING' },
      ...(transactionId === undefined ? {} : { transactionId }),
    })
    const sent = await send<ExecuteStatementCommandOutput>((abortSignal) => client.send(command, { abortSignal }), policy)
    return { rows: decodeRows(sent.answer), updatedRows: sent.answer.numberOfRecordsUpdated ?? 0, repeated: sent.repeated }
  }

  return { client, clock, random, arns, database, send, execute }
}
