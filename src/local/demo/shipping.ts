import type { DataApiDatabase } from '../../data-api/database.js'
import { handleOnce } from '../../inbox/handle-once.js'
import type { Ship } from './consumer.js'

/** The consumer's effect: a shipment per order, in one transaction with the events' ids in the inbox. */
export function shipping(database: DataApiDatabase): Ship {
  return (events) =>
    database.transaction(async (tx) => {
      let before = 0
      for (const { id, data } of events) {
        const { handled } = await handleOnce(
          tx,
          id,
          () =>
            tx.execute({
              sql: `INSERT INTO shipping.shipments (order_id, customer, customer_order)
                VALUES (CAST(:order_id AS uuid), CAST(:customer AS integer), CAST(:customer_order AS integer))`,
              parameters: { order_id: data.orderId, customer: data.customer, customer_order: data.customerOrder },
              repeatable: false,
            }),
          { schema: 'shipping' },
        )
        if (!handled) before++
      }
      return before
    })
}
