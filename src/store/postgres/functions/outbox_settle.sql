-- Records outcomes and gives shards back, for those shards alone that the token still leases.
-- p_published: JSON list of {"id": "...", "destination": "...", "messageId": "...", "replays": 1}; replays as claimed, absent for 0: an
--              event that was replayed since is another delivery, which this one does not confirm.
-- p_changes:   JSON list of {"id": "...", "attempts": 0, "outcome": "retry" | "hold" | "failed", "destination": "...",
--              "errorCode": "...", "error": "...", "charge": true, "delayMs": 5000 (retry), "block": true (failed)}.
--              attempts as claimed, so that a repeat of this call changes nothing. A hold is put aside until its destination
--              takes it: see outbox_circuits.
-- p_done:      JSON list of the shards to give back; null: all of the token's. Events that are not named stay ready.
-- Answer: what was changed; kept + given_back: shards that the token still leased. Fewer than
--              asked for is either a repeat of a call whose answer was lost, or a lost lease: settled_before, given_back and kept
--              tell which.
CREATE OR REPLACE FUNCTION outbox_settle(p_token uuid, p_published text, p_changes text, p_done text)
RETURNS TABLE (published bigint, retried bigint, held bigint, failed bigint, freed bigint, given_back bigint, kept bigint, settled_before bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  v_mine smallint[];
  v_keys text[];    -- keys that something stopped blocking
  v_row  record;
  v_done smallint[];
BEGIN
  PERFORM outbox_require_read_committed();
  retried := 0; held := 0; failed := 0;

  -- The fence.
  v_mine := ARRAY(SELECT s.shard FROM outbox_shard s WHERE s.lease_token = p_token ORDER BY s.shard FOR UPDATE);
  settled_before := (SELECT count(*) FROM outbox_shard s WHERE s.settled_token = p_token);

  -- Delivered: the queue row becomes a receipt. ("IS TRUE" keeps a condition from being offered to an index.)
  WITH result AS MATERIALIZED (
    SELECT r.* FROM json_to_recordset(CAST(p_published AS json)) AS r(id uuid, destination text, "messageId" text, replays integer)),
  gone AS (
    DELETE FROM outbox_delivery d
     WHERE d.event_id = ANY (ARRAY(SELECT r.id FROM result r)) AND (d.shard = ANY (v_mine) AND d.lane < 2) IS TRUE
       AND NOT (d.replays > 0 AND EXISTS (SELECT 1 FROM result r WHERE r.id = d.event_id AND COALESCE(r.replays, 0) < d.replays))
    RETURNING d.event_id, d.attempts, d.replays, d.destination, d.ordering_key, d.blocks_key),
  receipt AS (
    INSERT INTO outbox_receipt (event_id, attempts, replays, destination, broker_message_id)
    SELECT g.event_id, g.attempts + 1, g.replays, COALESCE(r.destination, g.destination), r."messageId" FROM gone g JOIN result r ON r.id = g.event_id)
  SELECT count(*), COALESCE(array_agg(DISTINCT g.ordering_key) FILTER (WHERE g.blocks_key), '{}') INTO published, v_keys FROM gone g;

  -- Whatever is put aside has a circuit that brings it back.
  INSERT INTO outbox_circuit (destination)
  SELECT DISTINCT r.destination FROM json_to_recordset(CAST(p_changes AS json)) AS r(outcome text, destination text)
   WHERE r.outcome = 'hold'
     -- one that is there is not even looked at: to wait for whoever updates it, and waits for a shard, would be a deadlock
     AND NOT EXISTS (SELECT 1 FROM outbox_circuit c WHERE c.destination = r.destination)
   ORDER BY r.destination
  ON CONFLICT DO NOTHING;

  -- Not delivered: to the lane where it waits.
  FOR v_row IN
    SELECT r.* FROM json_to_recordset(CAST(p_changes AS json))
      AS r(id uuid, attempts integer, outcome text, destination text, "errorCode" text, error text, "delayMs" bigint, charge boolean, block boolean)
     WHERE r.outcome IN ('retry', 'hold', 'failed')
  LOOP
    UPDATE outbox_delivery d
       SET lane       = CASE v_row.outcome WHEN 'retry' THEN 1 WHEN 'hold' THEN 2 ELSE 3 END,
           retry_at   = CASE v_row.outcome WHEN 'retry' THEN clock_timestamp() + COALESCE(v_row."delayMs", 0) * interval '1 millisecond' END,
           held_by    = CASE v_row.outcome WHEN 'hold' THEN 'destination:' || v_row.destination END,
           failed_at  = CASE v_row.outcome WHEN 'failed' THEN clock_timestamp() END,
           attempts   = d.attempts + CASE WHEN v_row.charge THEN 1 ELSE 0 END,
           released   = d.released AND v_row.outcome <> 'hold',
           starts     = CASE WHEN v_row.outcome = 'hold' AND v_row."errorCode" IS NULL  -- it was not sent
                             THEN d.starts - CASE WHEN d.start_token = p_token THEN 1 ELSE 0 END ELSE 0 END,
           start_token = NULL,
           last_destination = COALESCE(v_row.destination, d.last_destination),
           last_error_code  = COALESCE(v_row."errorCode", d.last_error_code),
           blocks_key = d.ordering_key IS NOT NULL AND (v_row.outcome <> 'failed' OR COALESCE(v_row.block, true)),
           last_error = COALESCE(left(v_row.error, 2000), d.last_error)
     WHERE d.event_id = v_row.id AND (d.shard = ANY (v_mine) AND d.lane < 2 AND d.attempts = v_row.attempts) IS TRUE;
    CONTINUE WHEN NOT FOUND;
    CASE v_row.outcome
      WHEN 'retry' THEN retried := retried + 1;
      WHEN 'hold'  THEN held := held + 1;
      ELSE
        failed := failed + 1;
        IF NOT COALESCE(v_row.block, true) THEN
          v_keys := v_keys || ARRAY(SELECT d.ordering_key FROM outbox_delivery d WHERE d.event_id = v_row.id AND d.ordering_key IS NOT NULL);
        END IF;
    END CASE;
  END LOOP;

  freed := outbox_free_followers(v_keys);

  v_done := ARRAY(SELECT m FROM unnest(v_mine) AS u(m)
                   WHERE p_done IS NULL OR m IN (SELECT CAST(v AS smallint) FROM json_array_elements_text(CAST(p_done AS json)) AS a(v)));
  PERFORM outbox_return_suspects(p_token, v_done);
  UPDATE outbox_shard s
     SET lease_token = NULL, lease_owner = NULL, lease_until = '-infinity', settled_token = p_token,
         handed = CASE WHEN s.reclaimed_from IS NULL THEN '{}' ELSE s.handed END
   WHERE s.shard = ANY (v_done);
  GET DIAGNOSTICS given_back = ROW_COUNT;
  kept := cardinality(v_mine) - given_back;
  RETURN NEXT;
END $$;
REVOKE ALL ON FUNCTION outbox_settle FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_settle TO outbox_relay;
