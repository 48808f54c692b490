-- From sha256. Not from hashtext(), which may change between major versions (then a key would change its shard), nor from
-- md5(), which fails on a server in FIPS mode. STABLE, as convert_to is: so they are inlined.
CREATE OR REPLACE FUNCTION outbox_key_shard(p_key text) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT get_byte(sha256(convert_to(p_key, 'UTF8')), 0) & 15
$$;
REVOKE ALL ON FUNCTION outbox_key_shard FROM PUBLIC;
