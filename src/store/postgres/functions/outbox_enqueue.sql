-- Queues new events: one call per INSERT statement, whatever the number of rows. lock_timeout: a transaction that sits on a key
-- gives its other writers 55P03 after 5 s, in place of a hang.
CREATE OR REPLACE FUNCTION outbox_enqueue() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM outbox_lock_keys(ARRAY(SELECT DISTINCT ordering_key FROM new_events WHERE ordering_key IS NOT NULL));
  INSERT INTO outbox_delivery (event_id, due_at, seq, row_bytes, payload_bytes, shard, lane, ordering_key, destination, retry_at)
  SELECT e.id, greatest(e.at, e.available_at), e.seq,
         300 + CASE WHEN e.bytes <= 48000 THEN e.bytes ELSE 0 END + octet_length(concat(e.event_type, e.aggregate_type,
                    e.aggregate_id, e.ordering_key, e.destination, e.headers)),
         e.bytes,
         CASE WHEN e.ordering_key IS NULL THEN e.seq % 16 ELSE outbox_key_shard(e.ordering_key) END,
         CASE WHEN e.available_at > e.at THEN 1 ELSE 0 END, e.ordering_key, e.destination,
         CASE WHEN e.available_at > e.at THEN e.available_at END
    FROM (SELECT nextval('outbox_delivery_seq') AS seq, clock_timestamp() AS at, octet_length(n.payload) AS bytes, n.*
            FROM new_events n OFFSET 0) e;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION outbox_enqueue FROM PUBLIC;
