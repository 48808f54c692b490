import type { Ledger } from './ledger.js'
import type { Glance } from './tally.js'

/** What is going on, for the line of each second. */
export type Phase = 'flowing' | 'OUTAGE' | 'recovering' | 'draining'

/** The title above the lines of `secondLine`. */
export const secondTitle = '  time  phase       written  published  shipped  backlog  oldest'

/** One line a second: `written` counts orders, `backlog` events that are due and not delivered, `oldest` their greatest age. */
export function secondLine(elapsedMs: number, phase: Phase, glance: Glance): string {
  const column = (value: number | string, width: number): string => String(value).padStart(width)
  return [
    column(`${Math.round(elapsedMs / 1000)} s`, 6),
    phase.padEnd(10),
    column(glance.committed, 7),
    column(glance.published, 9),
    column(glance.consumed, 7),
    column(glance.due, 7),
    column(`${glance.ageSeconds.toFixed(1)} s`, 6),
  ].join('  ')
}

/** The ledger for people, and whether it balances. */
export function ledgerLines(ledger: Ledger, reasons: readonly string[]): string[] {
  const lines: readonly (readonly [name: string, value: number, meaning: string])[] = [
    ['committed', ledger.committed, 'orders whose transaction was committed, each with one event'],
    ['rolled back', ledger.rolledBack, 'orders rolled back after their event was written'],
    ['published', ledger.published, 'events that a destination confirmed'],
    ['duplicates', ledger.duplicates, 'deliveries that the inbox recognised and dropped'],
    ['consumed', ledger.consumed, 'orders that took effect'],
    ['lost', ledger.lost, 'committed orders that never took effect'],
    ['order violations', ledger.orderViolations, 'orders that took effect after a later one of their customer'],
    ['failed', ledger.failed, 'events that the relay gave up'],
  ]
  return [
    ...lines.map(([name, value, meaning]) => `  ${name.padEnd(16)}  ${String(value).padStart(6)}  ${meaning}`),
    reasons.length === 0
      ? 'The ledger balances: every committed order took effect exactly once, in order, and nothing of the others was seen.'
      : `The ledger does NOT balance: ${reasons.join('; ')}.`,
  ]
}
