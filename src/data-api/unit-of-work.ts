import type { Clock } from '../core/clock.js'
import { deadlineAfter } from '../core/deadline.js'
import { SqlError, type SqlFailureKind } from '../core/errors.js'
import type { SqlExecutor, SqlStatement } from '../core/ports.js'
import type { Connection } from './connection.js'
import type { DataApiTransaction } from './transaction.js'

export interface UnitOfWorkOptions {
  /** How often the unit is tried in all, 1 to 10. Default 3; 1 never repeats it. */
  readonly maxAttempts?: number | undefined
  /**
   * A SELECT that finds a row if and only if the transaction was committed; asked when the commit's outcome is unknown, after
   * `work` has returned. A column `outcome` says more: the row proves a commit only if it is `committed`, there will never be
   * one if it is `aborted`, while it is `in progress` it is asked again, for up to 10 s, and `absent` proves that there was no
   * commit in the last 60 s. Default: none, and then such a commit is thrown as `ambiguous`.
   */
  readonly proof?: (() => SqlStatement | undefined) | undefined
}

const pauseBaseMs = 50
/** A commit that takes longer leaves its outcome open. */
const inProgressLimitMs = 10_000
const inProgressPauseMs = 100
/** What a commit wrote is there for so long at least: the shortest retention there is. */
const absentLimitMs = 60_000

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
    const tried = await tryOnce(database, clock, work, proof)
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
  clock: Clock,
  work: (tx: DataApiTransaction) => Promise<Value>,
  proof: UnitOfWorkOptions['proof'],
): Promise<Tried<Value>> {
  const tx = await begin(database)
  let value: Value
  try {
    value = await work(tx)
  } catch (error) {
    await tx.rollback()
    return { committed: false, retryable: wasLostByChance(tx), error }
  }

  const lostBefore = tx.lostBy()
  const sentAtMs = clock.nowMs()
  const statement = proof?.()
  try {
    await tx.commit()
    return { committed: true, value }
  } catch (error) {
    const end = await tx.end()
    if (!(error instanceof SqlError)) return { committed: false, retryable: wasLostByChance(tx), error }
    // gone, and not by the database's own word: what lies between may have sent the commit twice, and the first one worked
    const isGone = end === 'gone' && lostBefore === undefined && error.sqlState === undefined
    const isInDoubt = error.kind === 'ambiguous' || isGone
    if (!isInDoubt) return { committed: false, retryable: wasLostByChance(tx), error }
    // a rollback that was answered came before the commit
    if (end === 'rolled-back') return { committed: false, retryable: true, error: nothingCommitted(error) }
    const outcome = await lookUp(database, clock, statement, sentAtMs)
    if (outcome === 'committed') return { committed: true, value }
    // not there, and over: it will not come either
    if (outcome === 'aborted' || (outcome === 'no row' && end === 'gone')) {
      return { committed: false, retryable: true, error: nothingCommitted(error) }
    }
    return { committed: false, retryable: false, error: inDoubt(error) }
  }
}

/** `unknown`: there is nothing to look up, the looking up failed or came too late, or the transaction does not end. */
type CommitOutcome = 'committed' | 'aborted' | 'no row' | 'unknown'

async function lookUp(
  database: SqlExecutor,
  clock: Clock,
  proof: SqlStatement | undefined,
  sentAtMs: number,
): Promise<CommitOutcome> {
  if (proof === undefined) return 'unknown'
  const deadline = deadlineAfter(clock, inProgressLimitMs)
  try {
    for (;;) {
      const [row] = (await database.execute(proof)).rows
      if (row === undefined) return 'no row'
      if (!('outcome' in row) || row['outcome'] === 'committed') return 'committed'
      if (row['outcome'] === 'aborted') return 'aborted'
      if (row['outcome'] === 'absent') return clock.nowMs() - sentAtMs < absentLimitMs ? 'aborted' : 'unknown'
      if (row['outcome'] !== 'in progress' || deadline.remainingMs() <= 0) return 'unknown'
      await clock.sleep(inProgressPauseMs)
    }
  } catch {
    return 'unknown'
  }
}

/** Whatever `work` made of it: a transaction that failed by a constraint or a right would only fail again. */
function wasLostByChance(tx: DataApiTransaction): boolean {
  const kind = tx.lostBy()?.kind
  return kind === 'rolled-back' || kind === 'transaction-lost' || kind === 'ambiguous'
}

/** A transaction that began without our knowing its id is committed by nobody. */
async function begin(database: BeginsTransactions): Promise<DataApiTransaction> {
  try {
    return await database.begin()
  } catch (error) {
    throw error instanceof SqlError && error.kind === 'ambiguous' ? nothingCommitted(error) : error
  }
}

function nothingCommitted(error: SqlError): SqlError {
  return error.kind === 'transaction-lost' ? error : saying('transaction-lost', 'nothing was committed', error)
}

function inDoubt(error: SqlError): SqlError {
  if (error.kind === 'ambiguous') return error
  const answer = error.cause instanceof SqlError ? error.cause : error
  return saying('ambiguous', 'whether the transaction was committed could not be looked up', answer)
}

function saying(kind: SqlFailureKind, what: string, error: SqlError): SqlError {
  return new SqlError(kind, `${what}: ${error.message}`, { errorName: error.errorName, sqlState: error.sqlState, cause: error })
}
