-- Which events an operator's act takes, the oldest first: failed ones; for release those of them that block their key; for replay
-- published ones. p_filter, a JSON object; every part may be absent: ids (list), eventType, orderingKey, destination, fromMs, untilMs
-- (of failed_at; for replay of delivered_at); of failed ones errorCode, error (text contained in it); for replay keyed (whether it has
-- an ordering key). The plan is made for the parts that are there, so that a few ids do not cost the whole history.
CREATE OR REPLACE FUNCTION outbox_choose(p_action text, p_filter text, p_max_rows integer)
RETURNS TABLE (event_id uuid, ordering_key text) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  v_filter json := CAST(p_filter AS json);
BEGIN
  IF p_action NOT IN ('redrive', 'discard', 'release', 'replay') THEN
    RAISE EXCEPTION 'unknown action "%": use redrive, discard, release or replay', p_action USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF p_action = 'replay' THEN
    RETURN QUERY
    SELECT r.event_id, o.ordering_key
      FROM outbox_receipt r JOIN outbox o ON o.id = r.event_id
     WHERE NOT r.discarded
       AND (v_filter -> 'ids' IS NULL OR r.event_id IN (SELECT CAST(v AS uuid) FROM json_array_elements_text(v_filter -> 'ids') AS a(v)))
       AND (v_filter ->> 'eventType' IS NULL OR o.event_type = v_filter ->> 'eventType')
       AND (v_filter ->> 'orderingKey' IS NULL OR o.ordering_key = v_filter ->> 'orderingKey')
       AND (v_filter ->> 'keyed' IS NULL OR (o.ordering_key IS NOT NULL) = CAST(v_filter ->> 'keyed' AS boolean))
       AND (v_filter ->> 'destination' IS NULL OR r.destination = v_filter ->> 'destination')
       AND (v_filter ->> 'fromMs' IS NULL OR r.delivered_at >= to_timestamp(CAST(v_filter ->> 'fromMs' AS bigint) / 1000.0))
       AND (v_filter ->> 'untilMs' IS NULL OR r.delivered_at < to_timestamp(CAST(v_filter ->> 'untilMs' AS bigint) / 1000.0))
     ORDER BY r.delivered_at, r.event_id LIMIT p_max_rows;
  ELSE
    RETURN QUERY
    SELECT d.event_id, d.ordering_key
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
     ORDER BY d.failed_at LIMIT p_max_rows;
  END IF;
END $$;
REVOKE ALL ON FUNCTION outbox_choose FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_choose TO outbox_operator;
