// An order and its event in one transaction, through the RDS Data API.
//
//   OUTBOX_CLUSTER_ARN=... OUTBOX_SECRET_ARN=... OUTBOX_DATABASE=... node place-order.mjs 42 7 19.90
//
// Endpoint, region and credentials come from where every AWS SDK takes them, AWS_ENDPOINT_URL included.
import { createDataApiDatabase, createOutbox } from 'aurora-outbox-relay/writer'

const database = createDataApiDatabase({
  resourceArn: process.env.OUTBOX_CLUSTER_ARN,
  secretArn: process.env.OUTBOX_SECRET_ARN,
  database: process.env.OUTBOX_DATABASE,
})
const outbox = createOutbox({ database })

const [orderId, customerId, total] = process.argv.slice(2)

const [eventId] = await outbox.transaction(async (tx) => {
  await tx.execute(
    'INSERT INTO orders (id, customer_id, total) VALUES (CAST(:id AS bigint), CAST(:customer AS bigint), CAST(:total AS numeric))',
    { id: orderId, customer: customerId, total },
  )
  // written together with all other events of the transaction, just before the commit
  return tx.writeEvents([
    {
      eventType: 'OrderCreated',
      aggregateType: 'order',
      aggregateId: `order-${orderId}`,
      orderingKey: `customer-${customerId}`,
      payload: { orderId: Number(orderId), total },
    },
  ])
})

process.stdout.write(`${eventId}\n`)
