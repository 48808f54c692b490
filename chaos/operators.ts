import { randomUUID } from 'node:crypto'
import { SqlError } from '../src/core/errors.js'
import type { SqlExecutor } from '../src/core/ports.js'
import { carryOut, type ActFilter, type OperatorAction } from '../src/store/postgres/operate.js'
import { readChances, type OperatorAct, type Query } from './evidence.js'
import type { OperatorCall } from './schedule.js'

const actor = 'arn:aws:iam::000000000000:user/chaos'

/** Does what an operator does. `query`: by plain SQL, so that it meets no fault. */
export async function operate(database: SqlExecutor, query: Query, call: Omit<OperatorCall, 'atMs'>): Promise<OperatorAct> {
  const { action, maxRows, destination } = call
  const chances = await readChances(query, call)
  try {
    return { action, chances, events: await carry(database, action, { destination }, maxRows), failure: null }
  } catch (error) {
    const isExpected = error instanceof SqlError && error.kind !== 'permanent'
    return { action, chances, events: null, failure: isExpected ? null : String(error) }
  }
}

/** Codes after which it is worth trying again. */
const transientCodes = ['InternalError', 'InternalFailure', 'UnknownEntry']

/**
 * What operators do when everything works again: some of what gave up on a destination is sent again, and keys that are still
 * blocked go on. What failed for what it is stays failed.
 */
export async function tidyUp(database: SqlExecutor): Promise<void> {
  for (const errorCode of transientCodes) {
    const chosen = await carry(database, 'redrive', { errorCode }, 1)
    if (chosen > 0) await carry(database, 'redrive', { errorCode }, 20)
  }
  await releaseAll(database)
}

/** Keys that a failed event blocks go on. */
export async function releaseAll(database: SqlExecutor): Promise<void> {
  while ((await carry(database, 'release', {}, 500)) > 0);
}

async function carry(database: SqlExecutor, action: OperatorAction, filter: ActFilter, maxRows: number): Promise<number> {
  return carryOut(database, 'public', { action, filter, maxRows, actor, reason: 'chaos', request: randomUUID() })
}
