-- A destination is back: what was put aside for it returns to the ready lane, oldest first. A keyed one still blocks its key
-- until it is delivered.
CREATE OR REPLACE FUNCTION outbox_unhold(p_destination text, p_max_rows integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_ids  uuid[];
  v_rows bigint;
BEGIN
  PERFORM outbox_require_read_committed();
  v_ids := ARRAY(SELECT d.event_id FROM outbox_delivery d
                  WHERE d.held_by <> 'key' AND d.held_by = 'destination:' || p_destination ORDER BY d.seq LIMIT p_max_rows);
  PERFORM FROM outbox_shard s WHERE s.shard IN (SELECT d.shard FROM outbox_delivery d WHERE d.event_id = ANY (v_ids)) ORDER BY s.shard FOR UPDATE;
  UPDATE outbox_delivery d SET lane = 0, held_by = NULL
   WHERE d.event_id = ANY (v_ids) AND d.held_by = 'destination:' || p_destination;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  RETURN v_rows;
END $$;
REVOKE ALL ON FUNCTION outbox_unhold FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_unhold TO outbox_relay;
