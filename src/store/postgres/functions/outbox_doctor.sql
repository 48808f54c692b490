-- What is wrong with the queue, for the operator who looks: whether the trigger is on; stuck, events that are due for longer than
-- p_seconds although no relay serves their shard; leases that ran out as long ago; orphans, queue rows whose event was deleted by
-- hand; how long the oldest transaction of this database is open, which keeps dead rows, and how many the queue has.
CREATE OR REPLACE FUNCTION outbox_doctor(p_seconds integer)
RETURNS TABLE (trigger_on boolean, stuck bigint, expired_leases bigint, orphans bigint, oldest_transaction_ms bigint, dead_rows bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT EXISTS (SELECT 1 FROM pg_trigger t
                  WHERE t.tgrelid = CAST('outbox' AS regclass) AND t.tgname = 'outbox_enqueue' AND t.tgenabled IN ('O', 'A')),
         (SELECT count(*) FROM outbox_delivery d JOIN outbox_shard s ON s.shard = d.shard
           WHERE d.lane < 2 AND COALESCE(d.retry_at, d.due_at) < n.long_ago AND s.lease_until < n.now),
         (SELECT count(*) FROM outbox_shard s WHERE s.lease_until < n.long_ago AND isfinite(s.lease_until) AND s.lease_token IS NOT NULL),
         (SELECT count(*) FROM outbox_delivery d WHERE NOT EXISTS (SELECT 1 FROM outbox o WHERE o.id = d.event_id)),
         (SELECT CAST(extract(epoch FROM n.now - min(a.xact_start)) * 1000 AS bigint) FROM pg_stat_activity a
           WHERE a.datname = current_database() AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)),
         pg_stat_get_dead_tuples(CAST('outbox_delivery' AS regclass))
    FROM (SELECT clock_timestamp() AS now, clock_timestamp() - p_seconds * interval '1 second' AS long_ago) n
$$;
REVOKE ALL ON FUNCTION outbox_doctor FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_doctor TO outbox_operator;
