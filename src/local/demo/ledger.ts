/** The demo's account of every order, taken from the database's rows and the consumer's own effects. */
export interface Ledger {
  /** Orders whose transaction was committed; each wrote one event. */
  readonly committed: number
  /** Orders whose transaction was rolled back after it had written its event. */
  readonly rolledBack: number
  /** Events with a receipt: confirmed by their destination. */
  readonly published: number
  /** Deliveries that the inbox recognised as handled before. */
  readonly duplicates: number
  /** Effects of the consumer; an order that took effect twice counts twice. */
  readonly consumed: number
  /** Committed orders without an effect. */
  readonly lost: number
  /** Effects that came after the effect of a later order of the same customer. */
  readonly orderViolations: number
  /** Events that the relay gave up. */
  readonly failed: number
}

/**
 * Why a ledger does not balance, one sentence per reason; empty if it does: committed = published = consumed, each
 * once, nothing lost, nothing failed, no order broken, nothing seen of what was rolled back.
 *
 * @param strangers events or effects that belong to no committed order
 * @example
 * imbalances(ledger, 0) // []
 */
export function imbalances(ledger: Ledger, strangers: number): string[] {
  const { committed, published, consumed, lost, orderViolations, failed } = ledger
  const reasons: string[] = []
  if (committed === 0) reasons.push('no order was committed')
  if (strangers > 0) reasons.push(`${strangers} events or effects of orders that were rolled back were seen`)
  if (published !== committed) reasons.push(`${published} events were published, ${committed} orders were committed`)
  if (consumed !== committed) reasons.push(`${consumed} effects happened, ${committed} orders were committed`)
  if (lost > 0) reasons.push(`${lost} committed orders never took effect`)
  if (failed > 0) reasons.push(`${failed} events failed`)
  if (orderViolations > 0) reasons.push(`${orderViolations} orders took effect after a later order of their customer`)
  return reasons
}
