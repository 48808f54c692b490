-- Deletes delivered and discarded events past retention, with their receipts. Repeat until it answers 0. A receipt that is
-- being replayed at this moment is locked, and so left alone.
CREATE OR REPLACE FUNCTION outbox_cleanup(p_retention_seconds bigint, p_max_rows integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
  v_ids  uuid[];
  v_rows bigint;
BEGIN
  PERFORM outbox_require_read_committed();
  v_ids := ARRAY(SELECT r.event_id FROM outbox_receipt r
                  WHERE r.delivered_at < clock_timestamp() - p_retention_seconds * interval '1 second'
                  ORDER BY r.delivered_at LIMIT p_max_rows FOR UPDATE SKIP LOCKED);
  DELETE FROM outbox o WHERE o.id = ANY (v_ids);
  DELETE FROM outbox_receipt r WHERE r.event_id = ANY (v_ids);
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  RETURN v_rows;
END $$;
REVOKE ALL ON FUNCTION outbox_cleanup FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_cleanup TO outbox_cleanup;
