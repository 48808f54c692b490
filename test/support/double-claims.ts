import type pg from 'pg'

/** What must never happen, whatever fails: nobody else may claim what a live lease covers. */
export interface DoubleClaims {
  /** Claims of events so far. */
  readonly claims: number
  /** Shards that went to another token while their lease was running. */
  readonly takenWhileLeased: number
  /** Events that were handed out without a lease of their shard under the same token. */
  readonly withoutLease: number
}

/**
 * Watches every claim of a database from inside, by the database's own clock: a trigger sees each lease that is replaced,
 * and `outbox_claim` is wrapped so that the events it hands out are held against the leases. The watched relays notice
 * nothing.
 */
export async function watchDoubleClaims(client: pg.Client): Promise<() => Promise<DoubleClaims>> {
  await client.query(WATCH)
  await watchClaimsBy(client, 'outbox_claim')
  return async () => {
    const { rows } = await client.query<Record<keyof DoubleClaims, number>>(
      `SELECT (SELECT count(*)::int FROM watched_claim) AS "claims",
              (SELECT count(*)::int FROM watched_claim WHERE without_lease) AS "withoutLease",
              (SELECT count(*)::int FROM watched_lease) AS "takenWhileLeased"`,
    )
    return rows[0]!
  }
}

/** Watches another function beside `outbox_claim` too: its parameters and columns may be others, the token has the same name. */
export async function watchClaimsBy(client: pg.Client, name: string): Promise<void> {
  await client.query(wrap(name))
}

const WATCH = `
CREATE TABLE watched_claim (token uuid, event_id uuid, shard integer, claim_nr bigint, claimed_by text, without_lease boolean NOT NULL DEFAULT false);
CREATE INDEX ON watched_claim (claim_nr);
CREATE SEQUENCE watched_claim_nr;
CREATE TABLE watched_lease (shard integer, old_token uuid, new_token uuid, at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE FUNCTION watch_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO watched_lease VALUES (OLD.shard, OLD.lease_token, NEW.lease_token);
  RETURN NULL;
END $$;
CREATE TRIGGER watch_lease AFTER UPDATE ON outbox_shard FOR EACH ROW
  WHEN (OLD.lease_token <> NEW.lease_token AND OLD.lease_until > clock_timestamp())
  EXECUTE FUNCTION watch_lease();
`

const wrap = (name: string) => `
DO $do$
DECLARE
  v_is   oid := '${name}'::regproc;
  v_args text := (SELECT string_agg('$' || n, ', ') FROM pg_proc p, generate_series(1, p.pronargs) n WHERE p.oid = v_is);
BEGIN
  EXECUTE format($make$
    ALTER FUNCTION ${name} RENAME TO ${name}_itself;
    CREATE FUNCTION ${name}(%s) RETURNS %s LANGUAGE plpgsql SECURITY DEFINER ROWS 500 AS $wrap$
    #variable_conflict use_column
    DECLARE v_nr bigint := nextval('watched_claim_nr');
    BEGIN
      RETURN QUERY
        WITH c AS MATERIALIZED (SELECT * FROM ${name}_itself(%s)),
        noted AS (INSERT INTO watched_claim SELECT p_token, CAST(c.id AS uuid), c.shard, v_nr, '${name}' FROM c)
        SELECT * FROM c;
      UPDATE watched_claim w SET without_lease = true
       WHERE w.claim_nr = v_nr AND NOT EXISTS (SELECT 1 FROM outbox_shard s
         WHERE s.shard = w.shard AND s.lease_token = w.token AND s.lease_until > clock_timestamp());
    END $wrap$;
    GRANT EXECUTE ON FUNCTION ${name} TO outbox_relay;
  $make$, pg_get_function_arguments(v_is), pg_get_function_result(v_is), v_args);
END $do$;
`
