-- The lock on an ordering key is taken BEFORE seq is drawn and held to the end of the transaction, so within a key seq order is
-- commit order. The lock is one of 4,096 stripes, so that no statement can exhaust the lock table; stripes are locked in
-- ascending order, so that two statements cannot deadlock on them.
-- 1869968482 is our class of advisory locks.
CREATE OR REPLACE FUNCTION outbox_lock_keys(p_keys text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock(1869968482, stripe)
    FROM (SELECT DISTINCT outbox_key_stripe(k) AS stripe FROM unnest(p_keys) k WHERE k IS NOT NULL ORDER BY 1) s
$$;
REVOKE ALL ON FUNCTION outbox_lock_keys FROM PUBLIC;
