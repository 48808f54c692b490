-- The queue: one row per event that is not delivered yet.
--   lane 0 ready    taken in seq order
--        1 waiting  until retry_at: scheduled (available_at), or backing off
--        2 held     until something happens. held_by 'key': an earlier event of its ordering key goes first.
--                   held_by 'destination:<name>': put aside while that destination is down, or takes less than there is
--        3 failed   until a person acts
--   A claim reads lane 0 and the due part of lane 1, so the other lanes cost it nothing, however full they are.
--   blocks_key: later events of this ordering key must wait for this row, whatever lane it is in.
--   Whoever changes rows of a shard, inserts aside, first locks that shard's row in outbox_shard.
CREATE SEQUENCE outbox_delivery_seq AS bigint CACHE 1;  -- 1: seq order is delivery order, so no session may keep numbers
CREATE TABLE outbox_delivery (
  event_id      uuid        NOT NULL,
  due_at        timestamptz NOT NULL,                   -- since when it could have been delivered; only redrive sets it anew
  seq           bigint      NOT NULL,
  row_bytes     integer     NOT NULL,                   -- what it costs in an answer to a claim
  payload_bytes integer     NOT NULL,                   -- above 48,000 the claim leaves it out: fetched in chunks
  shard         smallint    NOT NULL,
  lane          smallint    NOT NULL,
  attempts      integer     NOT NULL DEFAULT 0,         -- charged attempts
  starts        smallint    NOT NULL DEFAULT 0,         -- times sent alone, outcome never recorded: see outbox_claim_suspect
  start_token   uuid,                                   -- the claim that started it last
  replays       smallint    NOT NULL DEFAULT 0,
  blocks_key    boolean     NOT NULL DEFAULT false,
  released      boolean     NOT NULL DEFAULT false,     -- came back from aside: it is not put aside again for being one too many
  ordering_key  text        COLLATE "C",
  destination   text        COLLATE "C",
  retry_at      timestamptz,
  failed_at     timestamptz,
  held_by       text        COLLATE "C",
  last_destination text     COLLATE "C",                -- where the last attempt went: a route's choice, unlike destination
  last_error_code  text     COLLATE "C",
  last_error       text,
  PRIMARY KEY (shard, lane, seq),
  CONSTRAINT outbox_delivery_lane CHECK (lane BETWEEN 0 AND 3 AND (lane = 1) = (retry_at IS NOT NULL)
                                     AND (lane = 2) = (held_by IS NOT NULL) AND (lane = 3) = (failed_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
CREATE UNIQUE INDEX outbox_delivery_event ON outbox_delivery (event_id);
-- These are empty as long as all goes well. The conditions name retry_at, held_by and failed_at, not lane, and so do the
-- functions: then no other index fits a statement, whatever the statistics say.
CREATE INDEX outbox_delivery_waiting  ON outbox_delivery (shard, retry_at, seq) WHERE retry_at IS NOT NULL;
CREATE INDEX outbox_delivery_blocking ON outbox_delivery (shard, ordering_key, seq) WHERE blocks_key;
CREATE INDEX outbox_delivery_aside    ON outbox_delivery (held_by, seq) WHERE held_by <> 'key';
CREATE INDEX outbox_delivery_failed   ON outbox_delivery (failed_at) WHERE failed_at IS NOT NULL;

-- What left the queue. An event is in the queue or has a receipt, never both.
CREATE TABLE outbox_receipt (
  event_id          uuid        NOT NULL PRIMARY KEY,
  delivered_at      timestamptz NOT NULL DEFAULT now(),  -- of a discarded event: when it was discarded
  attempts          integer     NOT NULL,                -- including the successful one
  replays           smallint    NOT NULL,
  discarded         boolean     NOT NULL DEFAULT false,
  destination       text,
  broker_message_id text
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX outbox_receipt_delivered ON outbox_receipt (delivered_at);

-- The leases: a claim leases shards, not events, so it writes one small row per shard and batch.
CREATE TABLE outbox_shard (
  shard         smallint    NOT NULL PRIMARY KEY CHECK (shard BETWEEN 0 AND 15),
  lease_token   uuid,                                     -- the fence: new for every claim
  lease_owner   text,                                     -- for people
  lease_until   timestamptz NOT NULL DEFAULT '-infinity',
  served_at     timestamptz NOT NULL DEFAULT '-infinity', -- least recently served first
  handed        bigint[]    NOT NULL DEFAULT '{}',        -- seq of what the lease's relay has in hand. Not empty when the lease has run
                                                          -- out: suspects, because one of them may have ended that relay
  reclaimed_from text,                                    -- the relay whose lease ran out, while its suspects are served
  settled_token uuid                                      -- the last token that gave the shard back: makes repeats recognisable
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
INSERT INTO outbox_shard (shard) SELECT generate_series(0, 15);

-- The circuits, one for all relays: a row for each destination that ever had events put aside. Functions alone change it.
-- open: one event of the destination, the probe, stays in the waiting lane until retry_at; the others are put aside as they are
-- claimed. Once retry_at is over the circuit is half-open: whoever claims the probe sends it, and the lease of its shard makes
-- it the only one. closed: relays bring back what is aside, as fast as they can send it.
CREATE TABLE outbox_circuit (
  destination   text        COLLATE "C" NOT NULL PRIMARY KEY,
  state         text        NOT NULL DEFAULT 'closed' CHECK (state IN ('open', 'closed')),
  failures      integer     NOT NULL DEFAULT 0,           -- that opened it, and probes since: each makes the cool-down longer
  opened_at     timestamptz,
  retry_at      timestamptz,                              -- the end of the cool-down
  probe_event   uuid,
  configuration boolean     NOT NULL DEFAULT false,       -- it will not heal by waiting
  error_code    text,
  error         text,
  released_at   timestamptz NOT NULL DEFAULT '-infinity', -- up to when the events a second are used up, see outbox_circuits
  CONSTRAINT outbox_circuit_state CHECK ((state = 'open') = (probe_event IS NOT NULL) AND (state = 'open') = (retry_at IS NOT NULL)
                                     AND (state = 'open') = (opened_at IS NOT NULL) AND (state = 'open') = (failures > 0))
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);
