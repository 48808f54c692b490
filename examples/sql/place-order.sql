-- The whole contract: one INSERT, inside the transaction that writes the business rows. Any driver, no library.
-- The service's own database user needs the role outbox_writer: GRANT outbox_writer TO orders_service;

BEGIN;

INSERT INTO orders (id, customer_id, total) VALUES (42, 7, 19.90);

-- The minimum: a type and a JSON payload.
INSERT INTO outbox (event_type, payload) VALUES ('OrderCreated', '{"orderId": 42, "total": 19.90}');

-- With order kept per customer, and a trace. Events of one ordering_key are delivered in commit order.
INSERT INTO outbox (event_type, aggregate_type, aggregate_id, ordering_key, headers, payload)
VALUES ('OrderPriced', 'order', 'order-42', 'customer-7',
        '{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}',
        '{"orderId": 42, "total": 19.90}');

-- A keyed insert locks its key until the transaction ends: insert events last, all of them in one statement if you can.
COMMIT;
