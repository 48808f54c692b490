-- A higher isolation level would freeze the snapshot that these functions rely on being fresh.
CREATE OR REPLACE FUNCTION outbox_require_read_committed() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'outbox functions need transaction isolation "read committed", this transaction has "%"',
      current_setting('transaction_isolation') USING ERRCODE = 'feature_not_supported';
  END IF;
END $$;
REVOKE ALL ON FUNCTION outbox_require_read_committed FROM PUBLIC;
