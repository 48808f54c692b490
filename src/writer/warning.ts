import type { NewEventRow } from '../store/postgres/insert-events.js'

/** Something about an event that is allowed, and seldom meant. */
export interface OutboxWarning {
  /** `ScheduledOrder`: both `availableAt` and `orderingKey` are set, and a scheduled event has no order among those of its key. */
  readonly code: 'ScheduledOrder'
  readonly message: string
  readonly eventType: string
  readonly eventId: string
}

export type OnWarning = (warning: OutboxWarning) => void

export function warn(row: NewEventRow, onWarning: OnWarning): void {
  if (row.availableAt === undefined || row.orderingKey === undefined) return
  onWarning({
    code: 'ScheduledOrder',
    message: `event type "${row.eventType}" is written with availableAt and orderingKey: a scheduled event has no order relative to the others of its key`,
    eventType: row.eventType,
    eventId: row.id,
  })
}

/** Node's own way, once for each outbox and event type: whoever schedules events does so all day. */
export function warnByProcess(): OnWarning {
  const warned = new Set<string>()
  return ({ code, message, eventType }) => {
    if (warned.has(eventType)) return
    warned.add(eventType)
    process.emitWarning(message, { type: 'OutboxWarning', code })
  }
}
