// Package orders shows the order and its event in one transaction with database/sql.
package orders

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// OrderCreated is the payload of the event of the same name.
type OrderCreated struct {
	OrderID int64  `json:"orderId"`
	Total   string `json:"total"`
}

// PlaceOrder commits both rows or none.
func PlaceOrder(ctx context.Context, db *sql.DB, customerID int64, order OrderCreated) error {
	payload, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("encode the event: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing

	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id, customer_id, total) VALUES ($1, $2, $3)`,
		order.OrderID, customerID, order.Total); err != nil {
		return err
	}
	// string(payload): a []byte would travel as bytea
	if _, err := tx.ExecContext(ctx,
		`INSERT INTO outbox (event_type, aggregate_id, ordering_key, payload) VALUES ($1, $2, $3, $4)`,
		"OrderCreated", fmt.Sprintf("order-%d", order.OrderID), fmt.Sprintf("customer-%d", customerID), string(payload)); err != nil {
		return err
	}
	return tx.Commit()
}
