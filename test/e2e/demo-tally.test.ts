import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { LocalStackDescription } from '../../src/local/stack.js'
import type { SqlDatabase, SqlParameter } from '../../src/core/ports.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase } from '../../src/data-api/database.js'
import { imbalances } from '../../src/local/demo/ledger.js'
import { createShop } from '../../src/local/demo/shop.js'
import { tallyOrders } from '../../src/local/demo/tally.js'
import { startOutbox, type RunningCommand } from '../support/outbox-command.js'

let local: RunningCommand
let database: SqlDatabase

beforeAll(async () => {
  local = startOutbox(['local', '--port', '0', '--relays', '0', '--json'])
  const description = JSON.parse(await local.firstLine) as LocalStackDescription
  const { endpoint, region } = description
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  database = createDataApiDatabase({ ...description, client: createRdsDataClient({ endpoint, region, credentials }) })
  await createShop(database)
}, 60_000)

afterAll(async () => {
  local.signal('SIGTERM')
  await local.ended
})

const sql = (text: string, parameters: Readonly<Record<string, SqlParameter>> = {}) =>
  database.execute({ sql: text, parameters, repeatable: false })

const order = async (customer: number, customerOrder: number): Promise<string> => {
  const id = randomUUID()
  await sql('INSERT INTO shop.orders VALUES (CAST(:id AS uuid), CAST(:customer AS integer), CAST(:number AS integer))', {
    id,
    customer,
    number: customerOrder,
  })
  return id
}
const ship = (id: string, customer: number, customerOrder: number) =>
  sql(
    `INSERT INTO shipping.shipments (order_id, customer, customer_order)
     VALUES (CAST(:id AS uuid), CAST(:customer AS integer), CAST(:number AS integer))`,
    { id, customer, number: customerOrder },
  )
const publish = async (id: string) => {
  await sql("INSERT INTO outbox (event_type, aggregate_id, payload) VALUES ('OrderPlaced', :id, '{}')", { id })
  await sql(
    `WITH gone AS (DELETE FROM outbox_delivery USING outbox o WHERE event_id = o.id AND o.aggregate_id = :id RETURNING event_id)
     INSERT INTO outbox_receipt (event_id, attempts, replays) SELECT event_id, 1, 0 FROM gone`,
    { id },
  )
}
const counts = { rolledBack: 5, duplicates: 6 }
const tally = () => tallyOrders(database, counts)

it('the tally sees every way in which a ledger can be wrong', async () => {
  const first = await order(1, 1)
  const second = await order(1, 2)
  const other = await order(2, 1)
  for (const id of [first, second, other]) await publish(id)
  await ship(first, 1, 1)
  await ship(second, 1, 2)
  await ship(other, 2, 1) // of another customer: after the second of customer 1, and no violation
  const good = await tally()
  expect(good).toEqual({
    ledger: { committed: 3, rolledBack: 5, published: 3, duplicates: 6, consumed: 3, lost: 0, orderViolations: 0, failed: 0 },
    strangers: 0,
  })
  expect(imbalances(good.ledger, good.strangers)).toEqual([])

  // lost: committed and published, never shipped
  const lost = await order(2, 2)
  await publish(lost)
  expect((await tally()).ledger).toMatchObject({ committed: 4, published: 4, consumed: 3, lost: 1 })

  // out of order: the third of customer 2 before the second
  const third = await order(2, 3)
  await publish(third)
  await ship(third, 2, 3)
  expect((await tally()).ledger.orderViolations).toBe(0)
  await ship(lost, 2, 2)
  expect((await tally()).ledger).toMatchObject({ consumed: 5, lost: 0, orderViolations: 1 })

  // took effect twice
  await ship(third, 2, 3)
  expect((await tally()).ledger).toMatchObject({ committed: 5, consumed: 6 })

  // an event, and an effect, of orders that were never committed
  await publish(randomUUID())
  expect(await tally()).toMatchObject({ ledger: { published: 6 }, strangers: 1 })
  await ship(randomUUID(), 3, 1)
  expect((await tally()).strangers).toBe(2)
})
