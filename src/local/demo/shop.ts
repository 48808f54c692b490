import type { SqlExecutor } from '../../core/ports.js'

/** How many customers with an account order; the key of an order's event is its customer. */
export const customers = 40

/**
 * The rows of the two services, in schemas of their own beside the outbox: `shop` writes orders, `shipping` ships them.
 * `shipments` has no unique constraint on purpose: an order that took effect twice must be seen, not prevented.
 */
const statements = [
  'CREATE SCHEMA shop',
  'CREATE TABLE shop.customers (id integer PRIMARY KEY, orders integer NOT NULL DEFAULT 0)',
  // customer null: a guest. customer_order: the customer's first, second ... order, drawn under the customer's row lock, so in commit order
  'CREATE TABLE shop.orders (id uuid PRIMARY KEY, customer integer REFERENCES shop.customers, customer_order integer)',
  `INSERT INTO shop.customers (id) SELECT generate_series(1, ${customers})`,
  'CREATE SCHEMA shipping',
  `CREATE TABLE shipping.shipments (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id uuid NOT NULL,
     customer integer, customer_order integer)`,
]

/** Creates the tables of both services, empty. */
export async function createShop(database: SqlExecutor): Promise<void> {
  for (const sql of statements) await database.execute({ sql, repeatable: false })
}
