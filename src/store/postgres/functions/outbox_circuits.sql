-- Answers the circuits (see outbox_circuit_states), and returns to the ready lane, oldest first, what is aside for destinations that
-- are closed. A keyed event still blocks its key until it is delivered.
-- p_wanted:     JSON object: destination -> events that the caller can send soon.
-- p_per_second: at most so many events a second return for one destination, whichever relays ask.
-- A probe that went another way (delivered just before its relay died, failed, discarded, behind an earlier event of its key)
-- gives way to another one; if nothing is aside, the next event of the destination is as good a test: closed.
CREATE OR REPLACE FUNCTION outbox_circuits(p_wanted text, p_per_second integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_circuit outbox_circuit%ROWTYPE;
  v_now     timestamptz := clock_timestamp();
  v_next    uuid;
  v_from    timestamptz;   -- up to when the events a second are used up
  v_rows    integer;
  v_some    uuid[];
  v_ids     uuid[] := '{}';
BEGIN
  PERFORM outbox_require_read_committed();
  FOR v_circuit IN   -- what another call is at already is left to it
    SELECT * FROM outbox_circuit c
     WHERE CASE c.state
             WHEN 'closed' THEN CAST(CAST(p_wanted AS json) ->> c.destination AS integer) > 0
             -- (or it waits for something else than the cool-down: it is routed elsewhere now, or nowhere)
             -- (nor behind suspects, which are served one by one)
             ELSE c.retry_at <= v_now AND (SELECT d.lane < 2 AND COALESCE(d.retry_at, c.retry_at) <= c.retry_at + interval '5 seconds'
                                                  AND (s.lease_until > v_now OR s.handed = '{}')
                                             FROM outbox_delivery d, outbox_shard s
                                            WHERE d.event_id = c.probe_event AND s.shard = d.shard) IS NOT TRUE
           END
     ORDER BY c.destination FOR UPDATE SKIP LOCKED
  LOOP
    IF v_circuit.state = 'open' THEN
      v_next := outbox_circuit_next(v_circuit.destination, v_circuit.probe_event);
      IF v_next IS NULL THEN
        PERFORM outbox_circuit_close(NULL, v_circuit.destination, NULL);
      ELSE
        UPDATE outbox_circuit c SET probe_event = v_next WHERE c.destination = v_circuit.destination;
        v_ids := v_ids || v_next;
      END IF;
    ELSE
      v_from := least(v_now, greatest(v_circuit.released_at, v_now - interval '1 second'));
      v_rows := least(CAST(CAST(p_wanted AS json) ->> v_circuit.destination AS integer),
                      floor(extract(epoch FROM v_now - v_from) * p_per_second));
      v_some := ARRAY(SELECT d.event_id FROM outbox_delivery d
                       WHERE d.held_by <> 'key' AND d.held_by = 'destination:' || v_circuit.destination ORDER BY d.seq LIMIT greatest(v_rows, 0));
      UPDATE outbox_circuit c SET released_at = v_from + cardinality(v_some) * interval '1 second' / p_per_second
       WHERE c.destination = v_circuit.destination AND (v_some <> '{}' OR c.released_at > v_now);  -- (a clock was set back)
      v_ids := v_ids || v_some;
    END IF;
  END LOOP;

  PERFORM FROM outbox_shard s WHERE s.shard IN (SELECT d.shard FROM outbox_delivery d WHERE d.event_id = ANY (v_ids)) ORDER BY s.shard FOR UPDATE;
  UPDATE outbox_delivery d SET lane = 0, held_by = NULL, released = true WHERE d.event_id = ANY (v_ids) AND (d.held_by <> 'key') IS TRUE;
  RETURN outbox_circuit_states();
END $$;
REVOKE ALL ON FUNCTION outbox_circuits FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_circuits TO outbox_relay;
