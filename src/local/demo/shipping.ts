import type { DataApiDatabase } from '../../data-api/database.js'
import { handleOnce } from '../../inbox/handle-once.js'
import type { Ship, ShippedOrder } from './consumer.js'

/** The consumer's effect: a shipment per order, in one transaction with the events' ids in the inbox. */
export function shipping(database: DataApiDatabase): Ship {
  return (events) =>
    database.transaction(async (tx) => {
      const orders: ShippedOrder[] = []
      for (const { id, data } of events) {
        await handleOnce(tx, id, () => Promise.resolve(orders.push(data)), { schema: 'shipping' })
      }
      if (orders.length > 0) {
        await tx.execute({
          sql: `INSERT INTO shipping.shipments (order_id, customer, customer_order)
            SELECT o."orderId", o.customer, o."customerOrder"
              FROM ROWS FROM (json_to_recordset(CAST(:orders AS json)) AS ("orderId" uuid, customer integer, "customerOrder" integer))
                   WITH ORDINALITY AS o("orderId", customer, "customerOrder", place)
             ORDER BY o.place`,
          parameters: { orders: JSON.stringify(orders) },
          repeatable: false,
        })
      }
      return events.length - orders.length
    })
}
