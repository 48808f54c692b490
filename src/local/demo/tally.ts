import type { SqlExecutor } from '../../core/ports.js'
import type { Ledger } from './ledger.js'

/** What no table knows: counted while the demo ran. */
export interface Counts {
  readonly rolledBack: number
  readonly duplicates: number
}

/** The ledger, and what belongs to no committed order (see `imbalances`). */
export interface Tally {
  readonly ledger: Ledger
  readonly strangers: number
}

/**
 * Draws the ledger from rows alone: orders as the shop committed them, receipts as the relay wrote them, shipments as the
 * consumer made them. A customer's orders are numbered in commit order, shipments in the order of their effect.
 */
export async function tallyOrders(database: SqlExecutor, counts: Counts): Promise<Tally> {
  const { rows } = await database.execute({
    sql: `SELECT
      (SELECT count(*) FROM shop.orders) AS committed,
      (SELECT count(*) FROM outbox_status WHERE status = 'published') AS published,
      (SELECT count(*) FROM outbox_status WHERE status = 'failed') AS failed,
      (SELECT count(*) FROM shipping.shipments) AS consumed,
      (SELECT count(*) FROM shop.orders o WHERE NOT EXISTS (SELECT FROM shipping.shipments s WHERE s.order_id = o.id)) AS lost,
      (SELECT count(*) FROM (
        SELECT customer_order < max(customer_order) OVER (
                 PARTITION BY customer ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS late
          FROM shipping.shipments WHERE customer IS NOT NULL) s WHERE late) AS order_violations,
      (SELECT count(*) FROM outbox e WHERE NOT EXISTS (SELECT FROM shop.orders o WHERE CAST(o.id AS text) = e.aggregate_id)) +
      (SELECT count(*) FROM shipping.shipments s WHERE NOT EXISTS (SELECT FROM shop.orders o WHERE o.id = s.order_id)) AS strangers`,
    repeatable: true,
  })
  const count = (name: string): number => Number(rows[0]?.[name] ?? 0)
  return {
    ledger: {
      committed: count('committed'),
      rolledBack: counts.rolledBack,
      published: count('published'),
      duplicates: counts.duplicates,
      consumed: count('consumed'),
      lost: count('lost'),
      orderViolations: count('order_violations'),
      failed: count('failed'),
    },
    strangers: count('strangers'),
  }
}

/** What the line of each second shows. */
export interface Glance {
  readonly committed: number
  readonly published: number
  readonly consumed: number
  readonly due: number
  readonly ageSeconds: number
}

/** A cheap look at how far everybody is. */
export async function glanceAtOrders(database: SqlExecutor): Promise<Glance> {
  const { rows } = await database.execute({
    sql: `SELECT (SELECT count(*) FROM shop.orders) AS committed, (SELECT count(*) FROM outbox_receipt) AS published,
      (SELECT count(*) FROM shipping.shipments) AS consumed, due, COALESCE(oldest_due_ms, 0) AS age_ms FROM outbox_backlog()`,
    repeatable: true,
  })
  const count = (name: string): number => Number(rows[0]?.[name] ?? 0)
  return {
    committed: count('committed'),
    published: count('published'),
    consumed: count('consumed'),
    due: count('due'),
    ageSeconds: count('age_ms') / 1000,
  }
}
