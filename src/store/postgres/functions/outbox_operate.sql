-- redrive: failed -> ready, same seq, so a key that it blocked goes on behind it. discard: failed -> receipt, the key goes on.
-- release: failed stays failed, the key goes on. Bounded by p_max_rows; repeat until it answers 0. p_filter: see outbox_choose; its
-- part request, a UUID, makes the call repeatable: a second one with it changes nothing and answers what the first did.
CREATE OR REPLACE FUNCTION outbox_operate(p_action text, p_filter text, p_max_rows integer, p_dry_run boolean, p_actor text, p_reason text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_filter json := CAST(p_filter AS json);
  v_ids    uuid[];
  v_keys   text[];
  v_done   bigint;
BEGIN
  PERFORM outbox_require_read_committed();
  IF p_action NOT IN ('redrive', 'discard', 'release') THEN
    RAISE EXCEPTION 'unknown action "%": use redrive, discard or release', p_action USING ERRCODE = 'invalid_parameter_value';
  END IF;
  v_done := outbox_done_before(v_filter ->> 'request');
  IF v_done IS NOT NULL THEN
    RETURN v_done;
  END IF;
  LOOP
    BEGIN
      v_ids := ARRAY(SELECT c.event_id FROM outbox_choose(p_action, p_filter, p_max_rows) c);
      IF p_dry_run OR v_ids = '{}' THEN
        RETURN cardinality(v_ids);
      END IF;
      PERFORM FROM outbox_shard s WHERE s.shard IN (SELECT d.shard FROM outbox_delivery d WHERE d.event_id = ANY (v_ids)) ORDER BY s.shard FOR UPDATE;
      -- Once more, since others may have acted while this waited: what failed anew meanwhile is another failure. 0 means that none is left.
      v_ids := ARRAY(SELECT c.event_id FROM outbox_choose(p_action, p_filter, p_max_rows) c WHERE c.event_id = ANY (v_ids));
      EXIT WHEN v_ids <> '{}';
      RAISE SQLSTATE 'OB001';
    EXCEPTION WHEN SQLSTATE 'OB001' THEN
      NULL;  -- shards that were locked in vain are free again: to wait for others with them in hand could be a deadlock
    END;
  END LOOP;

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
