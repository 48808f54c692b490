import type { BlockedKey } from '../store/postgres/operate.js'
import { relativeText } from './event-view.js'
import { shortened, tableLines } from './text.js'

/** Blocked keys as `list --blocked` shows them to people. */
export function blockedKeyLines(keys: readonly BlockedKey[], nowMs: number): string[] {
  return tableLines<BlockedKey>(
    [
      { title: 'KEY', value: (key) => shortened(key.orderingKey, 60) },
      { title: 'WAITING', align: 'right', value: (key) => String(key.waiting) },
      { title: 'BLOCKED BY', value: (key) => key.eventId },
      { title: 'TYPE', value: (key) => shortened(key.eventType, 40) },
      { title: 'SINCE', value: (key) => relativeText(key.failedAtMs, nowMs) },
      {
        title: 'ERROR',
        value: ({ lastErrorCode, lastError }) =>
          shortened([lastErrorCode, lastError].filter((part) => part !== null).join(': '), 60),
      },
    ],
    keys,
  )
}
