-- A destination is down: opens its circuit, with p_event as the probe, or keeps it open when p_event was the probe and failed: then
-- another event that is aside becomes the probe, because it could be this one event that the destination does not bear.
-- p_failures: as the caller knew them. Whoever comes later than another relay, or once more, or without a lease, changes nothing.
-- Answer: whether this call changed it, and all circuits. The caller settles p_event: as retry if it is the probe now, else as hold.
CREATE OR REPLACE FUNCTION outbox_circuit_fault(p_token uuid, p_destination text, p_event uuid, p_failures integer, p_cool_down_ms bigint,
                                     p_configuration boolean, p_error_code text, p_error text)
RETURNS TABLE (changed boolean, circuits text) LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_circuit  outbox_circuit%ROWTYPE;
  v_retry_at timestamptz;
  v_probe    uuid := p_event;
  v_next     uuid;
BEGIN
  PERFORM outbox_require_read_committed();
  INSERT INTO outbox_circuit (destination) VALUES (p_destination) ON CONFLICT DO NOTHING;
  SELECT * INTO v_circuit FROM outbox_circuit c WHERE c.destination = p_destination FOR UPDATE;
  changed := (SELECT true FROM outbox_shard s WHERE s.lease_token = p_token LIMIT 1) IS TRUE AND v_circuit.failures = p_failures AND (v_circuit.state = 'closed' OR v_circuit.probe_event = p_event);
  IF changed THEN
    v_retry_at := clock_timestamp() + p_cool_down_ms * interval '1 millisecond';
    IF v_circuit.state = 'open' THEN
      v_next := outbox_circuit_next(p_destination, p_event);
      PERFORM FROM outbox_shard s WHERE s.shard = (SELECT d.shard FROM outbox_delivery d WHERE d.event_id = v_next) FOR UPDATE;
      UPDATE outbox_delivery d SET lane = 1, held_by = NULL, retry_at = v_retry_at
       WHERE d.event_id = v_next AND (d.held_by = 'destination:' || p_destination) IS TRUE;
      IF FOUND THEN
        v_probe := v_next;
      END IF;
    END IF;
    UPDATE outbox_circuit c
       SET state = 'open', failures = c.failures + 1, opened_at = COALESCE(c.opened_at, clock_timestamp()), retry_at = v_retry_at,
           probe_event = v_probe, configuration = p_configuration, error_code = left(p_error_code, 2000), error = left(p_error, 2000)
     WHERE c.destination = p_destination;
  END IF;
  circuits := outbox_circuit_states();
  RETURN NEXT;
END $$;
REVOKE ALL ON FUNCTION outbox_circuit_fault FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_circuit_fault TO outbox_relay;
