-- A writer inserts, a relay and an operator call functions; nobody but the owner touches the other tables. The functions' rights
-- are granted beside each function. Roles belong to the whole cluster, so another database may create them at this moment.
DO $$
DECLARE v_role text;
BEGIN
  FOREACH v_role IN ARRAY ARRAY['outbox_writer', 'outbox_relay', 'outbox_cleanup', 'outbox_monitor', 'outbox_operator'] LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = v_role) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
      EXCEPTION
        WHEN duplicate_object OR unique_violation THEN
          NULL;  -- another database of the cluster was first
        WHEN insufficient_privilege THEN
          RAISE EXCEPTION 'role "%" is missing and user "%" may not create it: grant CREATEROLE to that user, or have somebody create outbox_writer, outbox_relay, outbox_cleanup, outbox_monitor and outbox_operator (NOLOGIN)',
            v_role, current_user USING ERRCODE = 'insufficient_privilege';
      END;
    END IF;
  END LOOP;
END $$;
DO $$
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO outbox_writer, outbox_relay, outbox_cleanup, outbox_monitor, outbox_operator', current_schema());
END $$;
REVOKE ALL ON outbox, outbox_delivery, outbox_receipt, outbox_shard, outbox_circuit, outbox_meta, outbox_audit, outbox_migration, outbox_status FROM PUBLIC;
REVOKE ALL ON SEQUENCE outbox_delivery_seq FROM PUBLIC;
GRANT INSERT, SELECT (id, idempotency_key) ON outbox TO outbox_writer;
-- the column's default runs as whoever inserts
GRANT EXECUTE ON FUNCTION outbox_event_id TO outbox_writer;
GRANT SELECT ON outbox_meta TO outbox_relay, outbox_cleanup, outbox_monitor, outbox_operator;
GRANT SELECT ON outbox_status, outbox_audit, outbox_circuit TO outbox_operator;
