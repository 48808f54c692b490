import type pg from 'pg'

/**
 * Watches the outbox from inside the database, beside the business table of the writers. Relays and operators notice nothing:
 * triggers write down what their functions change.
 */
export async function installWatch(client: pg.ClientBase): Promise<void> {
  await client.query(WATCH)
}

const WATCH = `
CREATE SCHEMA chaos;

-- What the writers did: one row beside each event, in its transaction. When that was committed, xmin tells.
CREATE TABLE chaos.written (
  event_id  uuid    NOT NULL PRIMARY KEY,
  nr        bigint  NOT NULL GENERATED ALWAYS AS IDENTITY,
  key       text,
  scheduled boolean NOT NULL,
  skips     boolean NOT NULL
);

-- What the consumer did: its effect, which nothing but the inbox keeps from happening twice.
CREATE TABLE chaos.applied (event_id uuid NOT NULL);

-- Each time a relay put an event back, aside, or gave it up.
CREATE TABLE chaos.settled (
  nr       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
  event_id uuid        NOT NULL,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  lane     smallint    NOT NULL,
  charged  integer     NOT NULL,
  attempts integer     NOT NULL,
  starts   smallint    NOT NULL,
  code     text,
  -- put aside, and its last error is the one of before: then it was most likely not sent at all
  unsent   boolean     NOT NULL
);
CREATE FUNCTION chaos.note_settled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO chaos.settled (event_id, lane, charged, attempts, starts, code, unsent)
  VALUES (NEW.event_id, NEW.lane, NEW.attempts - OLD.attempts, NEW.attempts, OLD.starts, NEW.last_error_code,
          NEW.lane = 2 AND NEW.last_error_code IS NOT DISTINCT FROM OLD.last_error_code);
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_settled AFTER UPDATE ON outbox_delivery FOR EACH ROW
  WHEN (OLD.lane < 2 AND NEW.lane > 0 AND NEW.held_by IS DISTINCT FROM 'key'
        AND (NEW.lane <> OLD.lane OR NEW.retry_at IS DISTINCT FROM OLD.retry_at OR NEW.attempts <> OLD.attempts))
  EXECUTE FUNCTION chaos.note_settled();

-- Each receipt: cleanup deletes receipts, and a replay does.
CREATE TABLE chaos.receipts (event_id uuid NOT NULL, discarded boolean NOT NULL);
CREATE FUNCTION chaos.note_receipt() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO chaos.receipts VALUES (NEW.event_id, NEW.discarded);
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_receipts AFTER INSERT ON outbox_receipt FOR EACH ROW EXECUTE FUNCTION chaos.note_receipt();

-- What may count as a crash: another relay took over a lease with a suspect started, and the server had not gone down meanwhile (that
-- excuses all but what waits for its key). A plain lease may count the crashes of before twice: a settlement that lost a part of its
-- shards takes the first of its events for those that were recorded.
CREATE TABLE chaos.ran_out (event_id uuid NOT NULL, crashes integer NOT NULL);
CREATE FUNCTION chaos.note_ran_out() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO chaos.ran_out
  SELECT d.event_id, CASE WHEN OLD.reclaimed_from IS NULL THEN d.starts ELSE 1 END
    FROM public.outbox_delivery d
   WHERE d.shard = OLD.shard
     AND CASE WHEN OLD.reclaimed_from IS NULL THEN d.starts > 0 AND d.seq = ANY (OLD.handed)
              ELSE d.start_token = OLD.lease_token AND (d.lane = 2 OR OLD.served_at >= pg_postmaster_start_time()) END;
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_ran_out AFTER UPDATE ON outbox_shard FOR EACH ROW
  WHEN (OLD.lease_token <> NEW.lease_token)
  EXECUTE FUNCTION chaos.note_ran_out();

CREATE TABLE chaos.deleted (events bigint NOT NULL);
CREATE FUNCTION chaos.note_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO chaos.deleted SELECT count(*) FROM gone;
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_deleted AFTER DELETE ON outbox REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION chaos.note_deleted();
`
