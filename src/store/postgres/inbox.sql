-- In the consumer's database: which events it has handled. The row is written in the transaction that has the effect.
CREATE TABLE IF NOT EXISTS outbox_inbox (
  event_id   text        NOT NULL PRIMARY KEY,
  handled_at timestamptz NOT NULL DEFAULT now()
);
