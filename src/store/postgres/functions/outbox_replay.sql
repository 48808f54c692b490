-- Delivered events (within retention) once more, with the same id. They queue up behind what is there now.
CREATE OR REPLACE FUNCTION outbox_replay(p_filter text, p_max_rows integer, p_dry_run boolean, p_actor text, p_reason text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_filter  json := CAST(p_filter AS json);
  v_ids     uuid[];
  v_replays smallint[];
  v_rows    bigint;
BEGIN
  PERFORM outbox_require_read_committed();
  WITH chosen AS (   -- locked, so that cleanup leaves them alone; what it has deleted already is not here any more
    SELECT r.event_id, CAST(r.replays + 1 AS smallint) AS replays
      FROM outbox_receipt r JOIN outbox o ON o.id = r.event_id
     WHERE NOT r.discarded
       AND (v_filter -> 'ids' IS NULL OR r.event_id IN (SELECT CAST(v AS uuid) FROM json_array_elements_text(v_filter -> 'ids') AS a(v)))
       AND (v_filter ->> 'eventType' IS NULL OR o.event_type = v_filter ->> 'eventType')
       AND (v_filter ->> 'orderingKey' IS NULL OR o.ordering_key = v_filter ->> 'orderingKey')
       AND (v_filter ->> 'destination' IS NULL OR r.destination = v_filter ->> 'destination')
       AND (v_filter ->> 'fromMs' IS NULL OR r.delivered_at >= to_timestamp(CAST(v_filter ->> 'fromMs' AS bigint) / 1000.0))
       AND (v_filter ->> 'untilMs' IS NULL OR r.delivered_at < to_timestamp(CAST(v_filter ->> 'untilMs' AS bigint) / 1000.0))
     ORDER BY r.delivered_at, r.event_id LIMIT p_max_rows FOR UPDATE OF r)
  SELECT COALESCE(array_agg(c.event_id), '{}'), COALESCE(array_agg(c.replays), '{}') INTO v_ids, v_replays FROM chosen c;
  IF p_dry_run OR v_ids = '{}' THEN
    RETURN cardinality(v_ids);
  END IF;
  v_rows := outbox_requeue(v_ids, v_replays);
  DELETE FROM outbox_receipt r WHERE r.event_id = ANY (v_ids);
  INSERT INTO outbox_audit (actor, action, reason, filter, events, event_ids)
  VALUES (p_actor, 'replay', p_reason, v_filter, v_rows, to_json(v_ids));
  RETURN v_rows;
END $$;
REVOKE ALL ON FUNCTION outbox_replay FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_replay TO outbox_operator;
