import { BeginTransactionCommand, type RDSDataClient } from '@aws-sdk/client-rds-data'
import type { Clock, Random } from '../core/clock.js'
import { SqlError } from '../core/errors.js'
import type { SqlCallOptions, SqlDatabase } from '../core/ports.js'
import { createRdsDataClient } from './client.js'
import { anyTransient, connect, untouched } from './connection.js'
import type { OnCall } from './retry.js'
import { systemClock, systemRandom } from './system-clock.js'
import { joinTransaction, type DataApiTransaction } from './transaction.js'
import { runUnitOfWork, type UnitOfWorkOptions } from './unit-of-work.js'

export interface DataApiDatabaseOptions {
  /** Made by `createRdsDataClient()`, which is also the default. A client whose SDK retries by itself is refused. */
  readonly client?: RDSDataClient | undefined
  /** ARN of the Aurora cluster; its Data API must be enabled. */
  readonly resourceArn: string
  /** ARN of the secret with the database user's name and password. */
  readonly secretArn: string
  /** Name of the database in the cluster. */
  readonly database: string
  /** How long a call without a deadline of its own may take, repeats included, in milliseconds. Default 60,000. */
  readonly defaultDeadlineMs?: number | undefined
  /** Told how each call went, repeats included. Default: nobody. */
  readonly onCall?: OnCall | undefined
  /** For tests. Default: the system's. */
  readonly clock?: Clock | undefined
  /** For tests. Default: the system's. */
  readonly random?: Random | undefined
}

export interface DataApiDatabase extends SqlDatabase {
  begin(options?: SqlCallOptions): Promise<DataApiTransaction>
  /** A transaction that another client began on the same cluster with `BeginTransaction`. */
  joinTransaction(transactionId: string): DataApiTransaction
  /**
   * Begins, runs `work`, commits; rolls back if `work` throws. Resolves only when the commit is certain: a commit whose
   * reply was lost is looked up with `proof`.
   *
   * A transaction that was lost for no reason of its own (deadlock, serialization failure, lock timeout, connection) is
   * begun again, and `work` with it, so `work` must do nothing that a rollback does not undo.
   *
   * Throws what `work` threw, or `SqlError`: of kind `ambiguous` only if nothing can tell whether the commit happened.
   */
  transaction<Value>(work: (tx: DataApiTransaction) => Promise<Value>, options?: UnitOfWorkOptions): Promise<Value>
}

/**
 * A database reached through the RDS Data API. Its calls repeat what is safe to repeat (see `SqlFailureKind`) until their
 * deadline, with exponential back-off and jitter, and throw `SqlError` otherwise; a client that retries by itself is
 * answered with `ConfigurationError`.
 *
 * @example
 * const database = createDataApiDatabase({ resourceArn, secretArn, database: 'orders' })
 * const { rows } = await database.execute({ sql: 'SELECT count(*) AS orders FROM orders', repeatable: true })
 */
export function createDataApiDatabase(options: DataApiDatabaseOptions): DataApiDatabase {
  const { resourceArn, secretArn, database } = options
  const client = options.client ?? createRdsDataClient()
  const connection = connect(
    client,
    { resourceArn, secretArn, database },
    {
      clock: options.clock ?? systemClock,
      random: options.random ?? systemRandom,
      defaultDeadlineMs: options.defaultDeadlineMs ?? 60_000,
      onCall: options.onCall,
    },
  )

  const it: DataApiDatabase = {
    execute: (statement, callOptions) =>
      connection.execute(statement, { again: statement.repeatable ? anyTransient : untouched, deadline: callOptions?.deadline }),

    begin: async (callOptions) => {
      // one that began without our knowing its id holds no lock, and ends by itself after 3 idle minutes
      const command = new BeginTransactionCommand({ ...connection.arns, database })
      const policy = { again: anyTransient, deadline: callOptions?.deadline }
      const { answer } = await connection.send((abortSignal) => client.send(command, { abortSignal }), policy)
      if (answer.transactionId === undefined) {
        throw new SqlError('ambiguous', 'BeginTransaction was answered without a transaction id', {
          errorName: 'UnreadableAnswer',
        })
      }
      return joinTransaction(connection, answer.transactionId)
    },

    joinTransaction: (transactionId) => joinTransaction(connection, transactionId),

    transaction: (work, workOptions) => runUnitOfWork(it, connection, work, workOptions),
  }
  return it
}
