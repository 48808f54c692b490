import type { SqlExecutor } from '../core/ports.js'
import type { EventStatusRow } from '../store/postgres/status.js'
import { ageInWords } from './text.js'

/** An event as `list --json` and `show --json` write it: `docs/cli.md` documents every field. */
export type EventJson = Omit<EventStatusRow, 'seq'> & { readonly seq: string | null }

/** JSON has no 64-bit integers, so `seq` travels as text. */
export function eventJson(event: EventStatusRow): EventJson {
  return { ...event, seq: event.seq === null ? null : String(event.seq) }
}

/** The database's own clock: ages must not depend on that of the person who looks. */
export async function databaseNowMs(executor: SqlExecutor): Promise<number> {
  const sql = 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS now_ms'
  const { rows } = await executor.execute({ sql, repeatable: true })
  return Number(rows[0]?.['now_ms'])
}

/** Since when an event is what it is: due, failed, delivered; of one in no state, created. */
export function sinceMs(event: EventStatusRow): number {
  return event.deliveredAtMs ?? event.failedAtMs ?? event.dueAtMs ?? event.createdAtMs
}

/** `3 minutes ago`, or `in 3 minutes` for what is scheduled. */
export function relativeText(momentMs: number, nowMs: number): string {
  const seconds = (nowMs - momentMs) / 1000
  return seconds >= 0 ? `${ageInWords(seconds)} ago` : `in ${ageInWords(-seconds)}`
}

/** `pending: backing off`. */
export function statusText(event: EventStatusRow): string {
  return event.detail === null ? event.status : `${event.status}: ${event.detail}`
}
