-- What is not delivered yet, exactly, in one read of the queue. oldest_due_ms: age of the oldest event that is due and neither
-- delivered nor failed, backing off and held ones included; null if there is none.
-- The clock is read once, not for each row, and the keys are counted by their own small index: a count(DISTINCT) here would sort
-- the whole queue (1,000,000 events: 1.8 s against 0.4 s).
CREATE OR REPLACE FUNCTION outbox_backlog()
RETURNS TABLE (oldest_due_ms bigint, due bigint, scheduled bigint, backing_off bigint, held bigint, failed bigint, blocked_keys bigint,
               oldest_failed_ms bigint, leased_shards bigint, open_circuits bigint, misconfigured_destinations bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT CAST(extract(epoch FROM (SELECT clock_timestamp())
                                 - min(d.due_at) FILTER (WHERE d.lane < 3 AND d.due_at <= (SELECT clock_timestamp()))) * 1000 AS bigint),
         count(*) FILTER (WHERE d.lane < 3 AND d.due_at <= (SELECT clock_timestamp())),
         count(*) FILTER (WHERE d.retry_at = d.due_at), count(*) FILTER (WHERE d.retry_at > d.due_at),
         count(*) FILTER (WHERE d.lane = 2), count(*) FILTER (WHERE d.lane = 3),
         (SELECT count(DISTINCT b.ordering_key) FROM outbox_delivery b WHERE b.blocks_key AND b.held_by IS DISTINCT FROM 'key'),
         CAST(extract(epoch FROM (SELECT clock_timestamp()) - min(d.failed_at) FILTER (WHERE d.lane = 3)) * 1000 AS bigint),
         (SELECT count(*) FROM outbox_shard s WHERE s.lease_until > clock_timestamp()),
         (SELECT count(*) FROM outbox_circuit c WHERE c.state = 'open'),
         (SELECT count(*) FROM outbox_circuit c WHERE c.state = 'open' AND c.configuration)
    FROM outbox_delivery d
$$;
REVOKE ALL ON FUNCTION outbox_backlog FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_backlog TO outbox_relay, outbox_monitor, outbox_operator;
