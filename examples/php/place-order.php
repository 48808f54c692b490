<?php
declare(strict_types=1);

/**
 * PDO (pdo_pgsql): the order and its event in one transaction.
 * The payload is an ordinary string parameter; encode it exactly once.
 */
function placeOrder(PDO $db, int $orderId, int $customerId, string $total): void
{
    $db->beginTransaction();
    try {
        $db->prepare('INSERT INTO orders (id, customer_id, total) VALUES (?, ?, ?)')
            ->execute([$orderId, $customerId, $total]);

        $payload = json_encode(['orderId' => $orderId, 'total' => $total], JSON_THROW_ON_ERROR);
        $db->prepare('INSERT INTO outbox (event_type, aggregate_id, ordering_key, payload) VALUES (?, ?, ?, ?)')
            ->execute(['OrderCreated', "order-$orderId", "customer-$customerId", $payload]);

        $db->commit();
    } catch (Throwable $error) {
        $db->rollBack(); // the event goes with the order: nobody ever sees it
        throw $error;
    }
}
