import { randomBytes } from 'node:crypto'
import type { Connection } from './connections.js'
import { statementFault } from './database-error.js'
import { DataApiFault } from './fault.js'
import type { Running } from './statement.js'

export interface OpenTransaction {
  readonly id: string
  readonly secretArn: string
  readonly database: string
  readonly busy: boolean
}

export interface Transactions {
  begin(connection: Connection, secretArn: string, database: string): Promise<string>
  /** Refused while another call is in flight; any failure of the statement ends the transaction. */
  run<T>(call: TransactionCall, start: (connection: Connection, database: string) => Running<T>): Promise<T>
  finish(call: TransactionCall, how: 'COMMIT' | 'ROLLBACK'): Promise<void>
  list(): readonly OpenTransaction[]
}

export interface TransactionCall {
  readonly transactionId: string
  readonly secretArn: string
  readonly database: string | undefined
}

interface Open {
  readonly id: string
  readonly secretArn: string
  readonly database: string
  readonly connection: Connection
  busy: boolean
  idleTimer: NodeJS.Timeout | undefined
}

/** Why a transaction is not there any more, in the service's words. */
const ENDINGS = {
  expired: 'Transaction may be expired.',
  terminated: 'One previous call resulted in a termination of your transaction.',
  aborted: 'Transaction has been aborted due to an error from a previous call.',
} as const

type Ending = keyof typeof ENDINGS

/** So many endings are remembered; an older transaction "may be expired". */
const REMEMBERED = 1_000

export function createTransactions(idleMs: number): Transactions {
  const open = new Map<string, Open>()
  const endings = new Map<string, Ending>()

  const lose = (transaction: Open, ending: Ending) => {
    if (!open.delete(transaction.id)) return
    clearTimeout(transaction.idleTimer)
    endings.set(transaction.id, ending)
    const [oldest] = endings.keys()
    if (endings.size > REMEMBERED && oldest !== undefined) endings.delete(oldest)
    // closing the connection rolls back at once, whatever state it is in
    transaction.connection.destroy()
  }

  const rest = (transaction: Open) => {
    transaction.busy = false
    transaction.idleTimer = setTimeout(() => lose(transaction, 'expired'), idleMs)
    transaction.idleTimer.unref()
  }

  const find = ({ transactionId, secretArn, database }: TransactionCall): Open => {
    const transaction = open.get(transactionId)
    if (transaction?.connection.isBroken() === true) lose(transaction, 'terminated')
    if (transaction === undefined || transaction.connection.isBroken() || transaction.secretArn !== secretArn) {
      throw new DataApiFault(
        'TransactionNotFoundException',
        `Transaction ${transactionId} is not found. ${ENDINGS[endings.get(transactionId) ?? 'expired']}`,
      )
    }
    if (database !== undefined && database !== transaction.database) {
      throw new DataApiFault('ValidationException', 'Database name is not the same as that of the transaction.')
    }
    if (transaction.busy) throw new DataApiFault('DatabaseErrorException', 'Transaction is still running a query')
    clearTimeout(transaction.idleTimer)
    transaction.busy = true
    return transaction
  }

  return {
    begin: async (connection, secretArn, database) => {
      try {
        await connection.client.query('BEGIN')
      } catch (error) {
        connection.destroy()
        throw statementFault(error, false)
      }
      const transaction: Open = { id: newId(), secretArn, database, connection, busy: false, idleTimer: undefined }
      open.set(transaction.id, transaction)
      rest(transaction)
      return transaction.id
    },
    run: async (call, start) => {
      const transaction = find(call)
      const { answer, done } = start(transaction.connection, transaction.database)
      void done.then((error) => {
        if (error === undefined) rest(transaction)
        else lose(transaction, endingOf(error))
      })
      // after a timeout that lets the statement continue, the transaction stays busy with it
      return answer
    },
    finish: async (call, how) => {
      const transaction = find(call)
      try {
        await transaction.connection.client.query(how)
      } catch (error) {
        lose(transaction, 'aborted')
        throw statementFault(error, false)
      }
      open.delete(transaction.id)
      transaction.connection.release()
    },
    list: () => [...open.values()].map(({ id, secretArn, database, busy }) => ({ id, secretArn, database, busy })),
  }
}

function endingOf(error: unknown): Ending {
  return error instanceof DataApiFault && error.fault === 'UnsupportedResultException' ? 'terminated' : 'aborted'
}

/** As long and as rich in `+`, `/` and `=` as the service's. */
function newId(): string {
  return randomBytes(94).toString('base64')
}
