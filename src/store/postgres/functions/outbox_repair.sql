-- Events that are in no state, because they were written while the trigger was disabled. Looks at the p_scan events after
-- p_after (null: from the start) and answers where to go on (null: that was the end). What it queues is audited; p_request as in outbox_operate.
CREATE OR REPLACE FUNCTION outbox_repair(p_after uuid, p_scan integer, p_dry_run boolean, p_actor text, p_reason text, p_request text)
RETURNS TABLE (next_after text, stateless bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_ids  uuid[];
  v_last uuid;
  v_seen bigint;
  v_done bigint;
BEGIN
  PERFORM outbox_require_read_committed();
  PERFORM pg_advisory_xact_lock(1869968482, -1);  -- one repair at a time: what another one queued could be delivered by now
  SELECT count(*), (array_agg(x.id ORDER BY x.id DESC))[1],
         COALESCE(array_agg(x.id ORDER BY x.id) FILTER (WHERE NOT x.known), '{}')
    INTO v_seen, v_last, v_ids
    FROM (SELECT o.id, EXISTS (SELECT 1 FROM outbox_delivery d WHERE d.event_id = o.id)
                       OR EXISTS (SELECT 1 FROM outbox_receipt r WHERE r.event_id = o.id) AS known
            FROM outbox o WHERE p_after IS NULL OR o.id > p_after ORDER BY o.id LIMIT p_scan) x;
  next_after := CASE WHEN v_seen = p_scan THEN CAST(v_last AS text) END;
  stateless := cardinality(v_ids);
  v_done := outbox_done_before(p_request);
  IF v_done IS NOT NULL THEN
    stateless := v_done;
  ELSIF NOT p_dry_run AND v_ids <> '{}' THEN
    stateless := outbox_requeue(v_ids, array_fill(CAST(0 AS smallint), ARRAY[cardinality(v_ids)]));
    INSERT INTO outbox_audit (actor, action, reason, filter, events, event_ids)
    VALUES (p_actor, 'repair', p_reason, json_build_object('after', p_after, 'scan', p_scan, 'request', p_request), stateless, to_json(v_ids));
  END IF;
  RETURN NEXT;
END $$;
REVOKE ALL ON FUNCTION outbox_repair FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_repair TO outbox_operator;
