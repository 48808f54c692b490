import { describe, expect, it } from 'vitest'
import { imbalances, type Ledger } from '../../src/local/demo/ledger.js'

const balanced: Ledger = {
  committed: 2000,
  rolledBack: 100,
  published: 2000,
  duplicates: 7,
  consumed: 2000,
  lost: 0,
  orderViolations: 0,
  failed: 0,
}

describe("the demo's ledger", () => {
  it('balances when every committed order was published and took effect once, whatever was delivered twice', () => {
    expect(imbalances(balanced, 0)).toEqual([])
  })

  it.each<[string, Partial<Ledger>, RegExp]>([
    ['an order is lost', { consumed: 1999, lost: 1 }, /1 committed orders never took effect/],
    ['an order took effect twice', { consumed: 2001 }, /2001 effects happened, 2000 orders were committed/],
    ['one is lost and another took effect twice', { lost: 1 }, /never took effect/],
    ['an event has no receipt', { published: 1999 }, /1999 events were published/],
    ['an event failed', { failed: 1 }, /1 events failed/],
    ['a customer saw orders out of order', { orderViolations: 1 }, /after a later order of their customer/],
    ['nothing was committed', { committed: 0, published: 0, consumed: 0 }, /no order was committed/],
  ])('does not balance when %s', (_, change, reason) => {
    expect(imbalances({ ...balanced, ...change }, 0).join('\n')).toMatch(reason)
  })

  it('does not balance when anything of a rolled back order was seen', () => {
    expect(imbalances(balanced, 1).join('\n')).toMatch(/rolled back were seen/)
  })
})
