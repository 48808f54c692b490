-- How many events a request changed that was carried out before; null if it was not, or has no name. A request whose reply was lost
-- is sent again under its name, and may itself arrive after its repeat: whichever comes second waits here for the first, and then
-- finds its audit row. 1869968483 is a class of advisory locks of its own.
CREATE OR REPLACE FUNCTION outbox_done_before(p_request text) RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
BEGIN
  IF p_request IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock(1869968483, hashtext(p_request));
  RETURN (SELECT a.events FROM outbox_audit a WHERE a.filter ->> 'request' = p_request);
END $$;
REVOKE ALL ON FUNCTION outbox_done_before FROM PUBLIC;
