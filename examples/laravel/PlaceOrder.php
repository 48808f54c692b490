<?php
declare(strict_types=1);

namespace App\Actions;

use App\Models\Order;
use Illuminate\Support\Facades\DB;

/**
 * Laravel: `DB::transaction` around the model and the event.
 * Use the query builder for the outbox, not a model with an `array` or `json` cast: a cast on top of json_encode encodes
 * the payload twice, and the table refuses that (outbox_payload_json_not_string).
 */
final class PlaceOrder
{
    public function __invoke(int $customerId, string $total): Order
    {
        // 3 attempts: Laravel repeats the closure after a deadlock
        return DB::transaction(function () use ($customerId, $total): Order {
            $order = Order::create(['customer_id' => $customerId, 'total' => $total]);

            DB::table('outbox')->insert([
                'event_type' => 'OrderCreated',
                'aggregate_id' => "order-{$order->id}",
                'ordering_key' => "customer-{$customerId}",
                'payload' => json_encode(['orderId' => $order->id, 'total' => $total], JSON_THROW_ON_ERROR),
            ]);

            return $order;
        }, 3);
    }
}
