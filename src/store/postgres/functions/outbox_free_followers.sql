-- Followers of a key that nothing holds back any more return to the ready lane: 500 at a time; if there are more, the last
-- one blocks the key, and the chain goes on when it is delivered. The caller has locked the shard.
CREATE OR REPLACE FUNCTION outbox_free_followers(p_keys text[]) RETURNS integer LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_key   text;
  v_ids   uuid[];
  v_last  uuid;      -- the last one to be freed, if there are more behind it
  v_freed integer := 0;
BEGIN
  FOREACH v_key IN ARRAY p_keys LOOP
    -- the key's first blocking rows, up to the first one that is not just a follower: that one holds back what comes after it
    SELECT COALESCE(array_agg(f.event_id) FILTER (WHERE f.nth <= 500), '{}'),
           CASE WHEN count(*) = 501 THEN (array_agg(f.event_id) FILTER (WHERE f.nth = 500))[1] END
      INTO v_ids, v_last
      FROM (SELECT b.event_id, row_number() OVER w AS nth, bool_and(b.held_by IS NOT DISTINCT FROM 'key') OVER w AS free
              FROM (SELECT d.event_id, d.seq, d.held_by FROM outbox_delivery d
                     WHERE d.blocks_key AND d.shard = outbox_key_shard(v_key) AND d.ordering_key = v_key
                     ORDER BY d.seq LIMIT 501) b
            WINDOW w AS (ORDER BY b.seq)) f
     WHERE f.free;
    UPDATE outbox_delivery d
       SET lane = 0, held_by = NULL, blocks_key = (d.event_id IS NOT DISTINCT FROM v_last)
     WHERE d.event_id = ANY (v_ids);
    v_freed := v_freed + cardinality(v_ids);
  END LOOP;
  RETURN v_freed;
END $$;
REVOKE ALL ON FUNCTION outbox_free_followers FROM PUBLIC;
