import type pg from 'pg'
import { OutboxError } from '../core/errors.js'

/** Loads the PostgreSQL client when it is needed: only the local stack needs it. @throws OutboxError `PgMissing` */
export async function loadPg(): Promise<Pick<typeof pg, 'Pool' | 'Client'>> {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new OutboxError('PgMissing', 'the local stack needs the npm package pg: install pg@8.23.1', { cause })
  }
}
