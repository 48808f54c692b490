-- Delivered events (within retention) once more, with the same id. They queue up behind what is there now.
-- p_filter: see outbox_choose; its part request as in outbox_operate.
CREATE OR REPLACE FUNCTION outbox_replay(p_filter text, p_max_rows integer, p_dry_run boolean, p_actor text, p_reason text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_filter  json := CAST(p_filter AS json);
  v_ids     uuid[];
  v_replays smallint[];
  v_rows    bigint;
BEGIN
  PERFORM outbox_require_read_committed();
  v_rows := outbox_done_before(v_filter ->> 'request');
  IF v_rows IS NOT NULL THEN
    RETURN v_rows;
  END IF;
  LOOP
    v_ids := ARRAY(SELECT c.event_id FROM outbox_choose('replay', p_filter, p_max_rows) c);
    IF p_dry_run OR v_ids = '{}' THEN
      RETURN cardinality(v_ids);
    END IF;
    WITH kept AS (   -- locked, so that cleanup leaves them alone; what it has deleted already is not here any more
      SELECT r.event_id, CAST(r.replays + 1 AS smallint) AS replays FROM outbox_receipt r
       WHERE r.event_id = ANY (v_ids) AND NOT r.discarded ORDER BY r.delivered_at, r.event_id FOR UPDATE)
    SELECT COALESCE(array_agg(k.event_id), '{}'), COALESCE(array_agg(k.replays), '{}') INTO v_ids, v_replays FROM kept k;
    EXIT WHEN v_ids <> '{}';   -- 0 means that none is left
  END LOOP;
  v_rows := outbox_requeue(v_ids, v_replays);
  DELETE FROM outbox_receipt r WHERE r.event_id = ANY (v_ids);
  INSERT INTO outbox_audit (actor, action, reason, filter, events, event_ids)
  VALUES (p_actor, 'replay', p_reason, v_filter, v_rows, to_json(v_ids));
  RETURN v_rows;
END $$;
REVOKE ALL ON FUNCTION outbox_replay FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_replay TO outbox_operator;
