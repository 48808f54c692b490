-- UUIDv7: 48 bits of milliseconds, then random. Ids that grow with time keep the primary keys of outbox and
-- outbox_receipt dense; random ids dirty one page per row.
CREATE FUNCTION outbox_event_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT CAST(encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
           substring(int8send(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)) FROM 3) FROM 1 FOR 6),
           52, 1), 53, 1), 'hex') AS uuid)
$$;

-- The event log. Nobody ever updates it.
CREATE TABLE outbox (
  id              uuid        NOT NULL DEFAULT outbox_event_id() PRIMARY KEY,   -- the event's identity, for ever
  event_type      text        NOT NULL CONSTRAINT outbox_event_type_length CHECK (octet_length(event_type) BETWEEN 1 AND 255),
  event_version   integer     NOT NULL DEFAULT 1,
  aggregate_type  text        CONSTRAINT outbox_aggregate_type_length CHECK (octet_length(aggregate_type) <= 255),
  aggregate_id    text        CONSTRAINT outbox_aggregate_id_length CHECK (octet_length(aggregate_id) <= 255),
  ordering_key    text        CONSTRAINT outbox_ordering_key_length CHECK (octet_length(ordering_key) BETWEEN 1 AND 255),
  destination     text        CONSTRAINT outbox_destination_length CHECK (octet_length(destination) BETWEEN 1 AND 255),
  headers         text        CONSTRAINT outbox_headers_json_object CHECK (json_typeof(CAST(headers AS json)) = 'object')
                              CONSTRAINT outbox_headers_length CHECK (octet_length(headers) <= 8192),
  -- text, so that every driver's plain string works without a cast; checked as JSON, kept byte for byte. A bare JSON
  -- string is refused, because that is what a payload looks like that was encoded twice.
  payload         text        NOT NULL CONSTRAINT outbox_payload_json_not_string CHECK (json_typeof(CAST(payload AS json)) <> 'string'),
  idempotency_key text        CONSTRAINT outbox_idempotency_key_length CHECK (octet_length(idempotency_key) BETWEEN 1 AND 255),
  available_at    timestamptz,                          -- null: at once
  created_at      timestamptz NOT NULL DEFAULT now() CONSTRAINT outbox_created_at_finite CHECK (isfinite(created_at))  -- for people; ages count from due_at
);
CREATE UNIQUE INDEX outbox_idempotency_key ON outbox (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- The trigger's function must exist before the trigger. functions/outbox_enqueue.sql gives it its body at the end of the same
-- migration run; until then an insert fails, so that no event can come in that nobody would deliver.
CREATE FUNCTION outbox_enqueue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the outbox is being installed: try again when its migration has ended' USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;
CREATE TRIGGER outbox_enqueue AFTER INSERT ON outbox
  REFERENCING NEW TABLE AS new_events FOR EACH STATEMENT EXECUTE FUNCTION outbox_enqueue();
