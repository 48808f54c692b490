-- One of 4,096 locks, from other bits than the shard: see outbox_lock_keys.
CREATE OR REPLACE FUNCTION outbox_key_stripe(p_key text) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT get_byte(sha256(convert_to(p_key, 'UTF8')), 1) << 4 | get_byte(sha256(convert_to(p_key, 'UTF8')), 2) >> 4
$$;
REVOKE ALL ON FUNCTION outbox_key_stripe FROM PUBLIC;
