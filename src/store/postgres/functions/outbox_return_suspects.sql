-- A settlement gives shards back that were leased for a suspect: the relay is alive. A start that came to no outcome was no crash,
-- and suspects that have an outcome are cleared.
CREATE OR REPLACE FUNCTION outbox_return_suspects(p_token uuid, p_shards smallint[]) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE v_shard outbox_shard%ROWTYPE;
BEGIN
  FOR v_shard IN SELECT s.* FROM outbox_shard s WHERE s.shard = ANY (p_shards) AND s.reclaimed_from IS NOT NULL LOOP
    UPDATE outbox_delivery d SET starts = d.starts - 1, start_token = NULL
     WHERE d.shard = v_shard.shard AND d.lane IN (0, 1) AND d.seq = ANY (v_shard.handed) AND (d.start_token = p_token) IS TRUE;
    UPDATE outbox_shard s SET handed = outbox_suspects(s.shard, s.handed) WHERE s.shard = v_shard.shard;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION outbox_return_suspects FROM PUBLIC;
