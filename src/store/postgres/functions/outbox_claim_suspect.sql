-- A lease that ran out in place of being given back: one of the events that its relay had in hand (outbox_shard.handed) may have ended
-- it, and would end the next one, and the next. So each of them is served alone. Leases the shard that waited longest for that, and
-- answers one of its suspects: the first that does not wait behind an earlier event of its key. Empty: there is none.
-- With a token that leases such a shard already, one of that: after a lost answer the relay knows none.
CREATE OR REPLACE FUNCTION outbox_claim_suspect(p_token uuid, p_owner text, p_lease_seconds integer) RETURNS uuid[] LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_shard    outbox_shard%ROWTYPE;
  v_suspects bigint[];
BEGIN
  FOR v_shard IN
    SELECT s.* FROM outbox_shard s
     WHERE (s.lease_until <= clock_timestamp() OR s.lease_token = p_token) AND s.handed <> '{}'
     ORDER BY s.lease_token = p_token DESC NULLS LAST, s.served_at
       FOR UPDATE SKIP LOCKED
  LOOP
    -- (the server went down since: the relay may well live, and only its lease could not be kept)
    IF v_shard.served_at < pg_postmaster_start_time() AND v_shard.lease_token <> p_token THEN
      UPDATE outbox_delivery d SET starts = d.starts - 1, start_token = NULL
       WHERE d.shard = v_shard.shard AND d.lane IN (0, 1) AND d.seq = ANY (v_shard.handed) AND (d.start_token = v_shard.lease_token) IS TRUE;
      UPDATE outbox_shard s SET handed = '{}' WHERE s.shard = v_shard.shard;
      CONTINUE;
    END IF;
    v_suspects := outbox_suspects(v_shard.shard, v_shard.handed);
    UPDATE outbox_delivery d SET lane = 2, held_by = 'key', blocks_key = true, retry_at = NULL
     WHERE d.shard = v_shard.shard AND d.lane IN (0, 1) AND d.seq = ANY (v_suspects)
       AND (SELECT true FROM outbox_delivery b WHERE b.blocks_key AND b.shard = d.shard
               AND b.ordering_key = d.ordering_key AND b.seq < d.seq LIMIT 1) IS TRUE;
    v_suspects := outbox_suspects(v_shard.shard, v_shard.handed);
    UPDATE outbox_shard s SET handed = v_suspects WHERE s.shard = v_shard.shard;
    CONTINUE WHEN v_suspects = '{}';
    UPDATE outbox_shard s
       SET lease_token = p_token, lease_owner = p_owner, served_at = clock_timestamp(),
           lease_until = clock_timestamp() + p_lease_seconds * interval '1 second',
           reclaimed_from = CASE WHEN s.lease_token <> p_token THEN COALESCE(s.lease_owner, '?') ELSE s.reclaimed_from END
     WHERE s.shard = v_shard.shard;
    RETURN ARRAY(SELECT d.event_id FROM outbox_delivery d
                  WHERE d.shard = v_shard.shard AND d.lane IN (0, 1) AND d.seq = ANY (v_suspects) ORDER BY d.seq LIMIT 1);
  END LOOP;
  RETURN '{}';
END $$;
REVOKE ALL ON FUNCTION outbox_claim_suspect FROM PUBLIC;
