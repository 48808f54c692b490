-- What operators did.
CREATE TABLE outbox_audit (
  id        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at        timestamptz NOT NULL DEFAULT now(),
  actor     text        NOT NULL CHECK (actor <> ''),
  action    text        NOT NULL,
  reason    text        NOT NULL CHECK (reason <> ''),
  filter    json        NOT NULL,
  events    integer     NOT NULL,
  event_ids json        NOT NULL
);
CREATE UNIQUE INDEX outbox_audit_request ON outbox_audit ((filter ->> 'request'));  -- see outbox_done_before

-- For people: one row per event.
CREATE VIEW outbox_status AS
SELECT o.id, o.event_type, o.aggregate_type, o.aggregate_id, o.ordering_key,
       COALESCE(r.destination, d.last_destination, o.destination) AS destination,
       CASE WHEN d.lane = 3 THEN 'failed' WHEN d.lane IS NOT NULL THEN 'pending'
            WHEN r.discarded THEN 'discarded' WHEN r.event_id IS NOT NULL THEN 'published'
            ELSE 'unknown' END AS status,                 -- unknown: written while the trigger was disabled, see outbox_repair
       CASE WHEN d.lane < 2 AND d.starts > 0 THEN 'suspected: ' || d.starts || ' relays ended with it in hand'
            ELSE CASE d.lane WHEN 0 THEN 'ready' WHEN 1 THEN CASE WHEN d.retry_at = d.due_at THEN 'scheduled' ELSE 'backing off' END
                   WHEN 2 THEN 'held by ' || d.held_by WHEN 3 THEN CASE WHEN d.blocks_key THEN 'blocks its key' END END END AS detail,
       COALESCE(d.attempts, r.attempts, 0) AS attempts, COALESCE(d.replays, r.replays, 0) AS replays,
       o.created_at, d.due_at, d.retry_at, d.failed_at, r.delivered_at, r.broker_message_id, d.last_error_code, d.last_error,
       o.headers, octet_length(o.payload) AS payload_bytes, d.shard, d.seq
  FROM outbox o
  LEFT JOIN outbox_delivery d ON d.event_id = o.id
  LEFT JOIN outbox_receipt  r ON r.event_id = o.id;
