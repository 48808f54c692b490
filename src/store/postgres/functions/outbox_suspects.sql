-- Of the events that a relay had in hand (their seq, ascending) those that are still to be sent now: no outcome was recorded of them.
CREATE OR REPLACE FUNCTION outbox_suspects(p_shard smallint, p_handed bigint[]) RETURNS bigint[] LANGUAGE sql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT ARRAY(SELECT d.seq FROM outbox_delivery d
                WHERE d.shard = p_shard AND d.lane IN (0, 1) AND d.seq = ANY (p_handed)
                  AND (d.retry_at IS NULL OR d.retry_at <= clock_timestamp()) IS TRUE
                ORDER BY d.seq)
$$;
REVOKE ALL ON FUNCTION outbox_suspects FROM PUBLIC;
