-- The same for events that are in the log already (replay, repair). Their order against newer events of their keys is not promised.
CREATE OR REPLACE FUNCTION outbox_requeue(p_ids uuid[], p_replays smallint[]) RETURNS integer LANGUAGE plpgsql
  SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
DECLARE v_rows integer;
BEGIN
  PERFORM outbox_lock_keys(ARRAY(SELECT ordering_key FROM outbox WHERE id = ANY (p_ids)));
  INSERT INTO outbox_delivery (event_id, due_at, seq, row_bytes, payload_bytes, shard, lane, replays, ordering_key, destination, retry_at)
  SELECT e.id, greatest(e.at, e.available_at), e.seq,
         300 + CASE WHEN e.bytes <= 48000 THEN e.bytes ELSE 0 END + octet_length(concat(e.event_type, e.aggregate_type,
                    e.aggregate_id, e.ordering_key, e.destination, e.headers)),
         e.bytes, CASE WHEN e.ordering_key IS NULL THEN e.seq % 16 ELSE outbox_key_shard(e.ordering_key) END,
         CASE WHEN e.available_at > e.at THEN 1 ELSE 0 END, e.replays, e.ordering_key, e.destination,
         CASE WHEN e.available_at > e.at THEN e.available_at END
    FROM (SELECT nextval('outbox_delivery_seq') AS seq, clock_timestamp() AS at, octet_length(s.payload) AS bytes, s.*
            FROM (SELECT o.*, i.replays FROM unnest(p_ids, p_replays) AS i(id, replays) JOIN outbox o USING (id)
                   ORDER BY o.created_at, o.id) s OFFSET 0) e
  ON CONFLICT (event_id) DO NOTHING;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  RETURN v_rows;
END $$;
REVOKE ALL ON FUNCTION outbox_requeue FROM PUBLIC;
