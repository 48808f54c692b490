-- p_filter, a JSON object; every part may be absent: ids (list), eventType, orderingKey, destination, errorCode, error (text
-- contained in it), fromMs, untilMs (of failed_at; for replay of delivered_at).
-- redrive: failed -> ready, same seq, so a key that it blocked goes on behind it. discard: failed -> receipt, the key goes on.
-- release: failed stays failed, the key goes on. Bounded by p_max_rows; repeat until it answers 0.
CREATE OR REPLACE FUNCTION outbox_operate(p_action text, p_filter text, p_max_rows integer, p_dry_run boolean, p_actor text, p_reason text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_filter json := CAST(p_filter AS json);
  v_ids    uuid[];
  v_keys   text[];
BEGIN
  PERFORM outbox_require_read_committed();
  IF p_action NOT IN ('redrive', 'discard', 'release') THEN
    RAISE EXCEPTION 'unknown action "%": use redrive, discard or release', p_action USING ERRCODE = 'invalid_parameter_value';
  END IF;
  v_ids := ARRAY(
    SELECT d.event_id
      FROM outbox_delivery d LEFT JOIN outbox o ON o.id = d.event_id
     WHERE d.failed_at IS NOT NULL
       AND (v_filter -> 'ids' IS NULL OR d.event_id IN (SELECT CAST(v AS uuid) FROM json_array_elements_text(v_filter -> 'ids') AS a(v)))
       AND (v_filter ->> 'eventType' IS NULL OR o.event_type = v_filter ->> 'eventType')
       AND (v_filter ->> 'orderingKey' IS NULL OR d.ordering_key = v_filter ->> 'orderingKey')
       AND (v_filter ->> 'destination' IS NULL OR COALESCE(d.last_destination, d.destination) = v_filter ->> 'destination')
       AND (v_filter ->> 'errorCode' IS NULL OR d.last_error_code = v_filter ->> 'errorCode')
       AND (v_filter ->> 'error' IS NULL OR strpos(d.last_error, v_filter ->> 'error') > 0)
       AND (v_filter ->> 'fromMs' IS NULL OR d.failed_at >= to_timestamp(CAST(v_filter ->> 'fromMs' AS bigint) / 1000.0))
       AND (v_filter ->> 'untilMs' IS NULL OR d.failed_at < to_timestamp(CAST(v_filter ->> 'untilMs' AS bigint) / 1000.0))
       AND (p_action <> 'release' OR d.blocks_key)
     ORDER BY d.failed_at
     LIMIT p_max_rows);
  IF p_dry_run OR v_ids = '{}' THEN
    RETURN cardinality(v_ids);
  END IF;

  PERFORM FROM outbox_shard s WHERE s.shard IN (SELECT d.shard FROM outbox_delivery d WHERE d.event_id = ANY (v_ids)) ORDER BY s.shard FOR UPDATE;
  IF p_action = 'redrive' THEN
    WITH r AS (UPDATE outbox_delivery d SET lane = 0, attempts = 0, starts = 0, start_token = NULL, failed_at = NULL, due_at = clock_timestamp()
                WHERE d.event_id = ANY (v_ids) AND (d.lane = 3) IS TRUE RETURNING d.event_id)
    SELECT array_agg(r.event_id) INTO v_ids FROM r;
  ELSIF p_action = 'release' THEN
    WITH r AS (UPDATE outbox_delivery d SET blocks_key = false
                WHERE d.event_id = ANY (v_ids) AND (d.lane = 3) IS TRUE AND d.blocks_key RETURNING d.event_id, d.ordering_key)
    SELECT array_agg(r.event_id), array_agg(DISTINCT r.ordering_key) INTO v_ids, v_keys FROM r;
  ELSE
    WITH r AS (DELETE FROM outbox_delivery d WHERE d.event_id = ANY (v_ids) AND (d.lane = 3) IS TRUE
               RETURNING d.event_id, d.attempts, d.replays, COALESCE(d.last_destination, d.destination) AS destination, d.ordering_key, d.blocks_key),
    receipt AS (INSERT INTO outbox_receipt (event_id, attempts, replays, discarded, destination)
                SELECT r.event_id, r.attempts, r.replays, true, r.destination FROM r)
    SELECT array_agg(r.event_id), array_agg(DISTINCT r.ordering_key) FILTER (WHERE r.blocks_key) INTO v_ids, v_keys FROM r;
  END IF;
  PERFORM outbox_free_followers(COALESCE(v_keys, '{}'));
  INSERT INTO outbox_audit (actor, action, reason, filter, events, event_ids)
  SELECT p_actor, p_action, p_reason, v_filter, COALESCE(cardinality(v_ids), 0), to_json(COALESCE(v_ids, '{}'));
  RETURN COALESCE(cardinality(v_ids), 0);
END $$;
REVOKE ALL ON FUNCTION outbox_operate FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_operate TO outbox_operator;
