-- The next probe: of the events that are aside for a destination the first that came after p_after, else the first; null: none.
CREATE OR REPLACE FUNCTION outbox_circuit_next(p_destination text, p_after uuid) RETURNS uuid LANGUAGE sql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT COALESCE(
    (SELECT d.event_id FROM outbox_delivery d
      WHERE d.held_by <> 'key' AND d.held_by = 'destination:' || p_destination
        AND d.seq > (SELECT a.seq FROM outbox_delivery a WHERE a.event_id = p_after) ORDER BY d.seq LIMIT 1),
    (SELECT d.event_id FROM outbox_delivery d
      WHERE d.held_by <> 'key' AND d.held_by = 'destination:' || p_destination ORDER BY d.seq LIMIT 1))
$$;
REVOKE ALL ON FUNCTION outbox_circuit_next FROM PUBLIC;
