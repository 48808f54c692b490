-- The destination took its probe (p_event), or no relay knows the destination any more (null): what is aside may come back.
-- Answer as of outbox_circuit_fault.
CREATE OR REPLACE FUNCTION outbox_circuit_close(p_token uuid, p_destination text, p_event uuid)
RETURNS TABLE (changed boolean, circuits text) LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE outbox_circuit c
     SET state = 'closed', failures = 0, opened_at = NULL, retry_at = NULL, probe_event = NULL, configuration = false, error_code = NULL, error = NULL
   WHERE c.destination = p_destination AND c.state = 'open' AND (p_event IS NULL OR (c.probe_event = p_event AND EXISTS (SELECT 1 FROM outbox_shard s WHERE s.lease_token = p_token)));
  changed := FOUND;
  circuits := outbox_circuit_states();
  RETURN NEXT;
END $$;
REVOKE ALL ON FUNCTION outbox_circuit_close FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_circuit_close TO outbox_relay;
