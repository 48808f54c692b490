-- Called before a suspect is encoded and sent, alone. It counts once for each token, until an outcome is recorded or the shard is
-- given back: a claim that answers starts > 0 says how many relays have ended with this event, and no other, in hand. False: not leased.
CREATE OR REPLACE FUNCTION outbox_start(p_token uuid, p_id uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM FROM outbox_shard s
    WHERE s.lease_token = p_token AND s.shard = (SELECT d.shard FROM outbox_delivery d WHERE d.event_id = p_id) FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE outbox_delivery d
     SET starts = d.starts + CASE WHEN d.start_token IS DISTINCT FROM p_token THEN 1 ELSE 0 END, start_token = p_token
   WHERE d.event_id = p_id AND (d.lane < 2) IS TRUE;
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION outbox_start FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_start TO outbox_relay;
