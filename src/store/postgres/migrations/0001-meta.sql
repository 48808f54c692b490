-- Transactional outbox for PostgreSQL 13 or newer.
--
-- The migrator runs every file in a transaction of its own, after SET LOCAL search_path = <schema>, pg_temp; so no name here is
-- qualified, and the functions take that path for their own (SET search_path FROM CURRENT).
-- Across releases tables only grow. A function whose signature or answer changes gets a new name, and the old one stays for one
-- release, because relays of the previous release run on the new schema during a deploy.

-- Which schema this is, and whom it serves. Exactly one row.
CREATE TABLE outbox_meta (
  one               boolean NOT NULL DEFAULT true PRIMARY KEY CHECK (one),
  schema_version    integer NOT NULL,
  min_relay_version text    NOT NULL,                     -- an older relay must refuse to run
  installation      text                                  -- the stack that delivers from here; null: none yet
);
INSERT INTO outbox_meta (schema_version, min_relay_version) VALUES (1, '0.1.0');
