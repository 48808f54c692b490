-- For people: the circuits that are not closed, and the destinations that events are put aside for. held: how many; what waits behind
-- them for its ordering key is not counted. No state: events are aside, and no circuit is there that would bring them back.
CREATE OR REPLACE FUNCTION outbox_circuit_report()
RETURNS TABLE (destination text, state text, opened_at_ms bigint, retry_at_ms bigint, failures integer, configuration boolean,
               error_code text, error text, held bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT COALESCE(c.destination, substr(a.held_by, length('destination:') + 1)),
         CASE WHEN c.state = 'open' AND c.retry_at <= clock_timestamp() THEN 'half-open' ELSE c.state END,
         CAST(extract(epoch FROM c.opened_at) * 1000 AS bigint), CAST(extract(epoch FROM c.retry_at) * 1000 AS bigint),
         COALESCE(c.failures, 0), COALESCE(c.configuration, false), c.error_code, c.error, COALESCE(a.held, 0)
    FROM outbox_circuit c
    FULL JOIN (SELECT d.held_by, count(*) AS held FROM outbox_delivery d WHERE d.held_by <> 'key' GROUP BY d.held_by) a
      ON a.held_by = 'destination:' || c.destination
   WHERE c.state IS DISTINCT FROM 'closed' OR a.held > 0
   ORDER BY 1
$$;
REVOKE ALL ON FUNCTION outbox_circuit_report FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_circuit_report TO outbox_operator;
