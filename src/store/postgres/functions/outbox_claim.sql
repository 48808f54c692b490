-- Leases up to p_max_shards free shards that have something due, and returns their due events in seq order: at most
-- p_max_rows, about p_max_bytes (the first always comes), p_key_rows per ordering key. With a token that leases shards already
-- it returns the due events of those: after a lost answer the same ones; while slow requests are out, new ones, if p_in_flight
-- (JSON list of ids) names those that the relay has still in hand.
-- p_suspect_lease_seconds: not null if the relay has nothing else in hand; then it may get a single suspect, leased for so long: see
-- outbox_claim_suspect. reclaimed_from: the relay whose lease ran out with it, null if it is no suspect. suspects_wait: there are
-- suspects that no relay has served for a second. circuits: in one of the rows, see outbox_circuit_states.
CREATE OR REPLACE FUNCTION outbox_claim(p_token uuid, p_owner text, p_max_rows integer, p_max_bytes integer, p_key_rows integer,
                             p_max_shards integer, p_lease_seconds integer, p_in_flight text, p_suspect_lease_seconds integer DEFAULT NULL)
RETURNS TABLE (id text, shard integer, seq bigint, event_type text, event_version integer, aggregate_type text, aggregate_id text,
               ordering_key text, destination text, headers text, attempts integer, starts integer, replays integer, reclaimed_from text, suspects_wait boolean,
               released boolean, created_at_ms bigint, due_at_ms bigint, payload_bytes integer, payload text, circuits text)
LANGUAGE plpgsql SECURITY DEFINER ROWS 500
SET search_path FROM CURRENT
-- Statistics of a queue are always wrong: it was empty when they were taken. So its rows are read in index order with a LIMIT,
-- or addressed by event_id = ANY (array), and never joined; and sequential scans are off.
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  v_window integer := CASE WHEN p_key_rows < p_max_rows THEN 2 * p_max_rows ELSE p_max_rows END;  -- room to step over a hot key
  v_busy   uuid[] := ARRAY(SELECT CAST(v AS uuid) FROM json_array_elements_text(CAST(p_in_flight AS json)) AS a(v));
  v_shards smallint[];
  v_ids    uuid[] := '{}';
  v_seqs   bigint[];     -- of v_ids, and their shards
  v_of     smallint[];
  v_moved  integer;
  v_suspects_wait boolean;
BEGIN
  PERFORM outbox_require_read_committed();

  -- Lock. The row lock is what makes everything below safe; shards that somebody else has locked are being served.
  v_shards := ARRAY(SELECT s.shard FROM outbox_shard s WHERE s.lease_token = p_token ORDER BY s.shard FOR UPDATE);
  IF v_shards = '{}' THEN
    IF EXISTS (SELECT 1 FROM outbox_shard s WHERE s.settled_token = p_token) THEN
      RETURN;  -- a repeat that arrives after its own batch was settled
    END IF;
    IF p_suspect_lease_seconds IS NOT NULL THEN
      v_ids := outbox_claim_suspect(p_token, p_owner, p_suspect_lease_seconds);
    END IF;
    v_shards := ARRAY(
      SELECT s.shard
        FROM outbox_shard s
       WHERE v_ids = '{}' AND s.lease_until <= clock_timestamp() AND s.handed = '{}'
         AND ((SELECT 1 FROM outbox_delivery d WHERE d.shard = s.shard AND d.lane = 0 LIMIT 1) IS NOT NULL
              OR (SELECT 1 FROM outbox_delivery d WHERE d.shard = s.shard AND d.retry_at <= clock_timestamp() LIMIT 1) IS NOT NULL)
       ORDER BY s.served_at
       LIMIT p_max_shards
         FOR UPDATE SKIP LOCKED);
  ELSIF EXISTS (SELECT 1 FROM outbox_shard s WHERE s.lease_token = p_token AND s.reclaimed_from IS NOT NULL) THEN
    v_ids := outbox_claim_suspect(p_token, p_owner, COALESCE(p_suspect_lease_seconds, p_lease_seconds));
    v_shards := '{}';
  END IF;
  IF v_shards = '{}' AND v_ids = '{}' THEN
    RETURN;  -- nothing is due, or others are serving it
  END IF;

  -- Look. Events behind a blocked key are moved out of the way, once; if that left nothing, look again.
  FOR round IN 1 .. CASE WHEN v_ids = '{}' THEN 20 ELSE 0 END LOOP
    WITH due AS MATERIALIZED (
      (SELECT q.* FROM unnest(v_shards) WITH ORDINALITY AS s(shard, turn) CROSS JOIN LATERAL (
         SELECT d.shard, d.lane, d.seq, d.event_id, d.row_bytes, d.ordering_key, s.turn,
                (SELECT true FROM outbox_delivery b WHERE b.blocks_key AND b.shard = d.shard
                    AND b.ordering_key = d.ordering_key AND b.seq < d.seq LIMIT 1) IS TRUE AS blocked
           FROM outbox_delivery d WHERE d.shard = s.shard AND d.lane = 0 AND d.event_id <> ALL (v_busy)
          ORDER BY d.seq LIMIT v_window) q
        LIMIT v_window)
      UNION ALL
      (SELECT q.* FROM unnest(v_shards) WITH ORDINALITY AS s(shard, turn) CROSS JOIN LATERAL (
         SELECT d.shard, d.lane, d.seq, d.event_id, d.row_bytes, d.ordering_key, s.turn,
                (SELECT true FROM outbox_delivery b WHERE b.blocks_key AND b.shard = d.shard
                    AND b.ordering_key = d.ordering_key AND b.seq < d.seq LIMIT 1) IS TRUE AS blocked
           FROM outbox_delivery d WHERE d.shard = s.shard AND d.retry_at <= clock_timestamp() AND d.event_id <> ALL (v_busy)
          ORDER BY d.retry_at, d.seq LIMIT p_max_rows) q
        LIMIT p_max_rows)),
    moved AS (
      UPDATE outbox_delivery d SET lane = 2, held_by = 'key', blocks_key = true, retry_at = NULL
       WHERE d.event_id = ANY (ARRAY(SELECT b.event_id FROM due b WHERE b.blocked))
      RETURNING 1),
    keyed AS (       -- not too many events of one key
      SELECT f.*, row_number() OVER (PARTITION BY f.lane ORDER BY f.turn, f.seq) AS place
        FROM (SELECT u.*, row_number() OVER (PARTITION BY u.ordering_key ORDER BY u.seq) AS nth FROM due u WHERE NOT u.blocked) f
       WHERE f.ordering_key IS NULL OR f.nth <= p_key_rows),
    batch AS (       -- the two lanes take turns, so that neither starves the other
      SELECT k.event_id, k.shard, k.seq, row_number() OVER w AS nth, sum(k.row_bytes) OVER w AS bytes
        FROM keyed k WINDOW w AS (ORDER BY k.place, k.lane))
    SELECT (SELECT count(*) FROM moved), COALESCE(array_agg(b.event_id), '{}'), array_agg(b.seq), array_agg(b.shard)
      INTO v_moved, v_ids, v_seqs, v_of
      FROM batch b WHERE b.nth = 1 OR (b.nth <= p_max_rows AND b.bytes <= p_max_bytes);
    EXIT WHEN v_ids <> '{}' OR v_moved = 0;
  END LOOP;

  -- Lease the shards that the batch comes from; the others are free again when this call ends.
  UPDATE outbox_shard s
     SET lease_token = p_token, lease_owner = p_owner, served_at = clock_timestamp(), reclaimed_from = NULL, handed = h.seqs,
         lease_until = clock_timestamp() + p_lease_seconds * interval '1 second'
    FROM (SELECT i.shard, array_agg(i.seq) AS seqs
            FROM (SELECT u.shard, u.seq FROM unnest(v_of, v_seqs) AS u(shard, seq)
                  UNION ALL
                  SELECT d.shard, d.seq FROM outbox_delivery d WHERE d.event_id = ANY (v_busy)) i
           GROUP BY i.shard) h
   WHERE s.shard = h.shard AND s.shard = ANY (v_of);

  v_suspects_wait := EXISTS (SELECT 1 FROM outbox_shard s WHERE s.lease_until <= clock_timestamp() AND s.handed <> '{}'
                                                           AND s.served_at < clock_timestamp() - interval '1 second');
  RETURN QUERY
    SELECT CAST(d.event_id AS text), CAST(d.shard AS integer), d.seq, o.event_type, o.event_version, o.aggregate_type, o.aggregate_id,
           d.ordering_key, d.destination, o.headers, d.attempts, CAST(d.starts AS integer), CAST(d.replays AS integer),
           (SELECT s.reclaimed_from FROM outbox_shard s WHERE s.shard = d.shard), v_suspects_wait, d.released,
           CAST(extract(epoch FROM o.created_at) * 1000 AS bigint), CAST(extract(epoch FROM d.due_at) * 1000 AS bigint),
           d.payload_bytes, CASE WHEN d.payload_bytes <= 48000 THEN o.payload END,
           CASE WHEN d.event_id = v_ids[1] THEN outbox_circuit_states() END
      FROM outbox_delivery d
      LEFT JOIN LATERAL (SELECT * FROM outbox x WHERE x.id = d.event_id OFFSET 0) o ON true  -- deleted by hand: no type, settle it as failed
     WHERE d.event_id = ANY (v_ids)
     ORDER BY d.seq;
END $$;
REVOKE ALL ON FUNCTION outbox_claim FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_claim TO outbox_relay;
