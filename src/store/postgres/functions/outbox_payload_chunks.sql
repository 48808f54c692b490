-- A payload that is too large for the claim, in pieces of p_chars characters (12,000 x 4 bytes stay under 64 KB a row).
CREATE OR REPLACE FUNCTION outbox_payload_chunks(p_id uuid, p_first integer, p_count integer, p_chars integer)
RETURNS TABLE (chunk integer, chunks integer, part text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
  SELECT p_first + i, (char_length(o.payload) + p_chars - 1) / p_chars, substr(o.payload, (p_first + i) * p_chars + 1, p_chars)
    FROM outbox o, generate_series(0, p_count - 1) i
   WHERE o.id = p_id AND (p_first + i) * p_chars < char_length(o.payload)
   ORDER BY 1
$$;
REVOKE ALL ON FUNCTION outbox_payload_chunks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_payload_chunks TO outbox_relay, outbox_operator;
