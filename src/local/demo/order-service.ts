import { randomUUID } from 'node:crypto'
import type { DataApiDatabase } from '../../data-api/database.js'
import type { NewEvent } from '../../writer/new-event.js'
import { createOutbox, type Outbox } from '../../writer/outbox.js'
import type { SqlExecutor } from '../../core/ports.js'
import { pauseUntil } from './pause.js'
import { customers } from './shop.js'

export interface OrderServiceOptions {
  readonly database: DataApiDatabase
  /** Orders to commit. */
  readonly orders: number
  readonly writers: number
  /** Orders a second, all writers together, if the machine is fast enough. */
  readonly ordersPerSecond: number
  /** Awaited when the first order is committed: the others follow. */
  readonly afterFirst: () => Promise<void>
  readonly stop: AbortSignal
}

export interface OrderService {
  /** Orders committed so far. */
  readonly committed: () => number
  /** Orders rolled back so far after their event was written. */
  readonly rolledBack: () => number
  /** Resolves when all orders are committed, or soon after `stop`; rejects if one could not be written. */
  readonly ended: Promise<void>
}

/** One order in twenty is rolled back, one in five is a guest's. */
const rollbackEvery = 20
const guestEvery = 5

/**
 * Writers that place orders at the same time, each order with its event in one transaction.
 *
 * A customer's events carry the customer as ordering key and go to the FIFO queue; a guest has no past, so those events
 * have no key and take the default destination, the bus.
 *
 * @example
 * const service = startOrderService({ database, orders: 2000, writers: 4, ordersPerSecond: 100, stop })
 * await service.ended
 */
export function startOrderService(options: OrderServiceOptions): OrderService {
  const { database, orders, writers, ordersPerSecond, afterFirst, stop } = options
  const outbox = createOutbox({ database })
  const failed = new AbortController()
  const over = AbortSignal.any([stop, failed.signal])
  const isOver = (): boolean => over.aborted
  let taken = 0
  let committed = 0
  let rolledBack = 0

  const write = async (number: number): Promise<void> => {
    if (number % rollbackEvery === rollbackEvery - 1) {
      await changeOneMind(database, outbox, number)
      rolledBack++
    }
    await outbox.transaction(async (tx) => tx.writeEvents([await placeOrder(tx, number)]))
    committed++
  }

  const writeOthers = async (startedMs: number): Promise<void> => {
    while (taken < orders && !isOver()) {
      const number = taken++
      await pauseUntil(startedMs + (number / ordersPerSecond) * 1000, over)
      if (isOver()) return
      await write(number)
    }
  }

  const writeAll = async (): Promise<void> => {
    await write(taken++)
    await afterFirst()
    const startedMs = performance.now()
    await Promise.all(
      Array.from({ length: writers }, () =>
        writeOthers(startedMs).catch((error: unknown) => {
          failed.abort() // the others need not go on
          throw error
        }),
      ),
    )
  }

  return { committed: () => committed, rolledBack: () => rolledBack, ended: writeAll() }
}

/** An order that is written whole, its event too, and then rolled back: nobody may ever see it. */
async function changeOneMind(database: DataApiDatabase, outbox: Outbox, number: number): Promise<void> {
  const tx = await database.begin()
  try {
    await outbox.writeEvents(tx, [await placeOrder(tx, number)])
  } finally {
    await tx.rollback()
  }
}

/** The business rows of an order; answers its event. */
async function placeOrder(tx: SqlExecutor, number: number): Promise<NewEvent> {
  const id = randomUUID()
  const event = { eventType: 'OrderPlaced', aggregateType: 'order', aggregateId: id }
  if (number % guestEvery === 0) {
    await tx.execute({ sql: 'INSERT INTO shop.orders (id) VALUES (CAST(:id AS uuid))', parameters: { id }, repeatable: false })
    return { ...event, payload: { orderId: id, customer: null, customerOrder: null } }
  }
  const customer = 1 + Math.floor(Math.random() * customers)
  const { rows } = await tx.execute({
    sql: `WITH customer AS (UPDATE shop.customers SET orders = orders + 1 WHERE id = CAST(:customer AS integer) RETURNING id, orders)
      INSERT INTO shop.orders (id, customer, customer_order) SELECT CAST(:id AS uuid), id, orders FROM customer
      RETURNING customer_order`,
    parameters: { id, customer },
    repeatable: false,
  })
  const customerOrder = Number(rows[0]?.['customer_order'])
  return { ...event, orderingKey: `customer-${customer}`, destination: 'fifo', payload: { orderId: id, customer, customerOrder } }
}
