-- Prolongs the lease of the batch's shards (p_shards: JSON list). Fewer than asked for: it was lost; send nothing more. The
-- token may lease more than the batch has, when the answer of an earlier claim was lost; those run out by themselves.
CREATE OR REPLACE FUNCTION outbox_renew(p_token uuid, p_shards text, p_lease_seconds integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE v_mine smallint[];
BEGIN
  v_mine := ARRAY(SELECT s.shard FROM outbox_shard s
                   WHERE s.lease_token = p_token AND s.shard IN (SELECT CAST(v AS smallint) FROM json_array_elements_text(CAST(p_shards AS json)) AS a(v))
                   ORDER BY s.shard FOR UPDATE OF s);   -- locked in ascending order, as everywhere: so nothing can deadlock
  UPDATE outbox_shard s SET lease_until = clock_timestamp() + p_lease_seconds * interval '1 second' WHERE s.shard = ANY (v_mine);
  RETURN cardinality(v_mine);
END $$;
REVOKE ALL ON FUNCTION outbox_renew FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_renew TO outbox_relay;
