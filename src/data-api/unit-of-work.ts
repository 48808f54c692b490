import { SqlError } from '../core/errors.js'
import type { SqlExecutor, SqlStatement } from '../core/ports.js'
import type { Connection } from './connection.js'
import type { DataApiTransaction } from './transaction.js'

export interface UnitOfWorkOptions {
  /** How often the unit is tried in all, 1 to 10. Default 3; 1 never repeats it. */
  readonly maxAttempts?: number | undefined
  /**
   * A SELECT that finds a row if and only if the transaction was committed; asked once, when the commit's outcome is
   * unknown, after `work` has returned. Default: none, and then such a commit is thrown as `ambiguous`.
   */
  readonly proof?: (() => SqlStatement | undefined) | undefined
}

const pauseBaseMs = 50

interface BeginsTransactions extends SqlExecutor {
  begin(): Promise<DataApiTransaction>
}

export async function runUnitOfWork<Value>(
  database: BeginsTransactions,
  { clock, random }: Pick<Connection, 'clock' | 'random'>,
  work: (tx: DataApiTransaction) => Promise<Value>,
  { maxAttempts = 3, proof }: UnitOfWorkOptions = {},
): Promise<Value> {
  for (let attempt = 1; ; attempt++) {
    const tried = await tryOnce(database, work, proof)
    if (tried.committed) return tried.value
    if (!tried.retryable || attempt >= maxAttempts) throw tried.error
    // two that deadlocked must not meet again
    await clock.sleep(pauseBaseMs * 2 ** (attempt - 1) * (1 + random.next()))
  }
}

type Tried<Value> =
  | { readonly committed: true; readonly value: Value }
  | { readonly committed: false; readonly retryable: boolean; readonly error: unknown }

async function tryOnce<Value>(
  database: BeginsTransactions,
  work: (tx: DataApiTransaction) => Promise<Value>,
  proof: UnitOfWorkOptions['proof'],
): Promise<Tried<Value>> {
  const tx = await database.begin()
  let value: Value
  try {
    value = await work(tx)
  } catch (error) {
    await tx.rollback()
    return { committed: false, retryable: wasLostByChance(tx), error }
  }

  try {
    await tx.commit()
    return { committed: true, value }
  } catch (error) {
    const end = await tx.end()
    if (!(error instanceof SqlError) || error.kind !== 'ambiguous') {
      return { committed: false, retryable: wasLostByChance(tx), error }
    }
    // a rollback that was answered came before the commit
    if (end === 'rolled-back') return { committed: false, retryable: true, error: nothingCommitted(error) }
    const committed = await isProven(database, proof?.())
    if (committed === true) return { committed: true, value }
    // not there, and over: it will not come either
    if (committed === false && end === 'gone') return { committed: false, retryable: true, error: nothingCommitted(error) }
    return { committed: false, retryable: false, error }
  }
}

/** undefined: there is nothing to look up, or the looking up failed. */
async function isProven(database: SqlExecutor, proof: SqlStatement | undefined): Promise<boolean | undefined> {
  if (proof === undefined) return undefined
  try {
    return (await database.execute(proof)).rows.length > 0
  } catch {
    return undefined
  }
}

/** Whatever `work` made of it: a transaction that failed by a constraint or a right would only fail again. */
function wasLostByChance(tx: DataApiTransaction): boolean {
  const kind = tx.lostBy()?.kind
  return kind === 'rolled-back' || kind === 'transaction-lost' || kind === 'ambiguous'
}

function nothingCommitted(error: SqlError): SqlError {
  return new SqlError('transaction-lost', `nothing was committed: ${error.message}`, {
    errorName: error.errorName,
    sqlState: error.sqlState,
    cause: error,
  })
}
