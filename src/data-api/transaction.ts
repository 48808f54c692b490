import { CommitTransactionCommand, RollbackTransactionCommand } from '@aws-sdk/client-rds-data'
import { deadlineAfter } from '../core/deadline.js'
import { SqlError, type SqlFailureKind } from '../core/errors.js'
import type { SqlTransaction } from '../core/ports.js'
import type { Connection } from './connection.js'

/** A rollback that is not answered by then is left to the service, which ends idle transactions after 3 minutes. */
const rollbackLimitMs = 10_000

/** Commit and rollback name their transaction, so that sending them again does nothing twice. */
const resent: readonly SqlFailureKind[] = ['not-executed', 'ambiguous']

/**
 * How a transaction ended: `rolled-back`: certainly nothing of it is there. `gone`: it is over, and whether by commit or by
 * rollback is not known from here. `unknown`: it may even be open still.
 */
export type TransactionEnd = 'rolled-back' | 'gone' | 'unknown'

export interface DataApiTransaction extends SqlTransaction {
  /** The service's id, for calls of another client. */
  readonly transactionId: string
  /** The failure after which nothing of it can be saved, if there was one. */
  lostBy(): SqlError | undefined
  /** Rolls back unless it is over, and says what became of it. Never throws. */
  end(): Promise<TransactionEnd>
}

/**
 * Calls wait for one another, in the order made: the service refuses two at once. After any failure but `not-executed`
 * nothing can be saved: PostgreSQL has aborted the transaction, or nobody knows whether the statement is still running.
 */
export function joinTransaction(connection: Connection, transactionId: string): DataApiTransaction {
  const { client, arns, clock } = connection
  let last: Promise<unknown> = Promise.resolve()
  let lost: SqlError | undefined
  let commitSent = false
  let state: 'open' | 'committed' | 'rolled-back' | 'gone' = 'open'

  const inTurn = <T>(call: () => Promise<T>): Promise<T> => {
    const turn = last.then(call)
    last = turn.catch(() => undefined)
    return turn
  }

  const requireOpen = (): void => {
    if (lost !== undefined) throw lostBy(lost, 'an earlier call ended the transaction')
    if (state !== 'open') throw new SqlError('permanent', `the transaction is over (${state})`, { errorName: 'TransactionOver' })
  }

  const end = async (): Promise<TransactionEnd> => {
    if (state !== 'open') return state === 'committed' ? 'gone' : state
    try {
      const command = new RollbackTransactionCommand({ ...arns, transactionId })
      const policy = { again: resent, deadline: deadlineAfter(clock, rollbackLimitMs) }
      await connection.send((abortSignal) => client.send(command, { abortSignal }), policy)
      // answered, so it was open until now: a commit that is still under way finds nothing
      state = 'rolled-back'
    } catch (error) {
      if (!isNotFound(error)) return 'unknown'
      state = commitSent ? 'gone' : 'rolled-back'
    }
    return state
  }

  return {
    transactionId,

    lostBy: () => lost,

    execute: (statement, options) =>
      inTurn(async () => {
        requireOpen()
        try {
          return await connection.execute(statement, { transactionId, again: ['not-executed'], deadline: options?.deadline })
        } catch (error) {
          if (!(error instanceof SqlError) || error.kind === 'not-executed' || error.errorName === 'InvalidParameter') throw error
          lost = error
          throw error.kind === 'ambiguous' || isNotFound(error) ? lostBy(error, 'the transaction is given up') : error
        }
      }),

    commit: (options) =>
      inTurn(async () => {
        requireOpen()
        const command = new CommitTransactionCommand({ ...arns, transactionId })
        try {
          await connection.send((abortSignal) => client.send(command, { abortSignal }), {
            again: resent,
            deadline: options?.deadline,
          })
          state = 'committed'
        } catch (error) {
          commitSent = true
          if (!(error instanceof SqlError) || error.kind === 'not-executed') throw error
          if (isNotFound(error)) state = 'gone'
          lost = error
          throw isNotFound(error) && error.kind !== 'ambiguous' ? lostBy(error, 'nothing was committed') : error
        }
      }),

    rollback: async () => {
      await inTurn(end)
    },

    end: () => inTurn(end),
  }
}

function isNotFound(error: unknown): boolean {
  if (!(error instanceof SqlError)) return false
  return (
    ['TransactionNotFoundException', 'NotFoundException'].includes(error.errorName) ||
    /transaction \S+ is not found/i.test(error.message)
  )
}

function lostBy(error: SqlError, what: string): SqlError {
  return new SqlError('transaction-lost', `${what}: ${error.message}`, {
    errorName: error.errorName,
    sqlState: error.sqlState,
    cause: error,
  })
}
