import { randomUUID } from 'node:crypto'
import { OutboxError } from '../src/core/errors.js'
import type { DataApiDatabase } from '../src/data-api/database.js'
import { carryOut, type ActFilter, type OperatorAction } from '../src/store/postgres/operate.js'
import type { OperatorCall } from './schedule.js'

const actor = 'arn:aws:iam::000000000000:user/chaos'

/** Does what an operator does; answers to how many events, or null if it failed, as it may while everything else does. */
export async function operate(database: DataApiDatabase, { action, maxRows, destination }: OperatorCall): Promise<number | null> {
  try {
    return await carry(database, action, { destination }, maxRows)
  } catch (error) {
    if (error instanceof OutboxError) return null
    throw error
  }
}

/** Codes after which it is worth trying again. */
const transientCodes = ['InternalError', 'InternalFailure', 'UnknownEntry']

/**
 * What operators do when everything works again: some of what gave up on a destination is sent again, and keys that are still
 * blocked go on. What failed for what it is stays failed.
 */
export async function tidyUp(database: DataApiDatabase): Promise<void> {
  for (const errorCode of transientCodes) {
    const chosen = await carry(database, 'redrive', { errorCode }, 1)
    if (chosen > 0) await carry(database, 'redrive', { errorCode }, 20)
  }
  await releaseAll(database)
}

/** Keys that a failed event blocks go on. */
export async function releaseAll(database: DataApiDatabase): Promise<void> {
  while ((await carry(database, 'release', {}, 500)) > 0);
}

async function carry(database: DataApiDatabase, action: OperatorAction, filter: ActFilter, maxRows: number): Promise<number> {
  return carryOut(database, 'public', { action, filter, maxRows, actor, reason: 'chaos', request: randomUUID() })
}
