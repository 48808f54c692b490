-- The circuits that matter to a relay: not closed, or with events aside. As one JSON text, so that a claim can carry it; null: none.
CREATE OR REPLACE FUNCTION outbox_circuit_states() RETURNS text LANGUAGE sql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT CAST(json_agg(json_build_object('destination', c.destination, 'state', c.state, 'failures', c.failures,
                                         'probeEvent', c.probe_event, 'retryInMs', c.retry_in_ms, 'aside', c.aside)) AS text)
    FROM (SELECT s.destination, CASE WHEN s.state = 'open' AND s.retry_at <= clock_timestamp() THEN 'half-open' ELSE s.state END AS state,
                 s.failures, s.probe_event,
                 CAST(ceil(greatest(0, extract(epoch FROM s.retry_at - clock_timestamp()) * 1000)) AS bigint) AS retry_in_ms,
                 (SELECT true FROM outbox_delivery d WHERE d.held_by <> 'key' AND d.held_by = 'destination:' || s.destination LIMIT 1) IS TRUE AS aside
            FROM outbox_circuit s) c
   WHERE c.state <> 'closed' OR c.aside
$$;
REVOKE ALL ON FUNCTION outbox_circuit_states FROM PUBLIC;
