-- Retention of failed events: past it they are discarded, with an audit row, and then deleted as delivered ones are.
CREATE OR REPLACE FUNCTION outbox_expire_failed(p_retention_seconds bigint, p_max_rows integer) RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
  SELECT outbox_operate('discard', CAST(json_build_object('untilMs',
           CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) - p_retention_seconds * 1000) AS text),
           p_max_rows, false, 'cleanup', 'past the retention of failed events')
$$;
REVOKE ALL ON FUNCTION outbox_expire_failed FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outbox_expire_failed TO outbox_cleanup;
