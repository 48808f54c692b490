import { describe, expect, it } from 'vitest'
import { ledgerLines, secondLine, secondTitle } from '../../src/local/demo/report.js'

const glance = { committed: 1234, published: 1200, consumed: 1190, due: 77, ageSeconds: 9.64 }

describe("the demo's lines", () => {
  it('stand below their titles', () => {
    const line = secondLine(61_400, 'OUTAGE', glance)
    expect(line).toBe('  61 s  OUTAGE         1234       1200     1190       77   9.6 s')
    for (const [title, value] of [
      ['written', '1234'],
      ['published', '1200'],
      ['shipped', '1190'],
      ['backlog', '77'],
      ['oldest', '9.6 s'],
    ] as const) {
      expect(line.indexOf(value) + value.length).toBe(secondTitle.indexOf(title) + title.length)
    }
  })

  it('say at the end whether the ledger balances, and if not, why', () => {
    const ledger = {
      committed: 2,
      rolledBack: 1,
      published: 2,
      duplicates: 0,
      consumed: 1,
      lost: 1,
      orderViolations: 0,
      failed: 0,
    }
    expect(ledgerLines(ledger, []).at(-1)).toMatch(/^The ledger balances: /)
    expect(ledgerLines(ledger, ['1 committed orders never took effect']).at(-1)).toBe(
      'The ledger does NOT balance: 1 committed orders never took effect.',
    )
  })
})
