import type { Mutant } from './mutant.js'

const SERVE_BATCH = 'src/core/serve-batch.ts'
const CLAIM = 'src/store/postgres/functions/outbox_claim.sql'
const SETTLE = 'src/store/postgres/functions/outbox_settle.sql'
const RENEW = 'src/store/postgres/functions/outbox_renew.sql'
const CLAIM_AND_SETTLE = 'test/integration/functions/claim-and-settle.test.ts'
const RACES = 'test/integration/races/relays.test.ts'
const WHEN_THINGS_GO_WRONG = 'test/integration/relay-pass-failures.test.ts'

/** Who may change what of the queue, and what a relay knows of it. */
export const mutantsOfLeases: readonly Mutant[] = [
  {
    name: 'settle-without-token',
    breaks: 'a settlement changes events of every leased shard, whoever leases it',
    file: SETTLE,
    find: 'WHERE s.lease_token = p_token ORDER BY s.shard FOR UPDATE',
    replace: 'WHERE s.lease_token IS NOT NULL ORDER BY s.shard FOR UPDATE',
    killers: [{ file: CLAIM_AND_SETTLE, test: 'with a token that leases nothing changes nothing' }],
  },
  {
    name: 'settle-by-owner',
    breaks: 'a settlement changes events of all shards that its relay leases, whichever batch leases them',
    file: SETTLE,
    find: 'WHERE s.lease_token = p_token ORDER BY s.shard FOR UPDATE',
    replace:
      'WHERE s.lease_owner IN (SELECT x.lease_owner FROM outbox_shard x WHERE x.lease_token = p_token) ORDER BY s.shard FOR UPDATE',
    killers: [{ file: CLAIM_AND_SETTLE, test: 'leaves alone what another batch of the same relay leases' }],
  },
  {
    name: 'one-token-for-all-batches-of-a-relay',
    breaks: 'a relay claims with its own name, so that none of its batches is told from another',
    file: SERVE_BATCH,
    find: 'new Batch(random.uuid(), prepare',
    replace: 'new Batch(context.owner, prepare',
    killers: [{ file: 'test/integration/relay-pass.test.ts', test: 'costs two calls a batch' }],
  },
  {
    name: 'claim-without-locking-the-shard',
    breaks: 'a claim takes free shards without locking them',
    file: CLAIM,
    find: 'FOR UPDATE SKIP LOCKED',
    replace: '',
    killers: [{ file: RACES, test: 'of two claims of one shard the second gets nothing' }],
  },
  {
    name: 'look-before-the-shard-is-locked',
    breaks: 'a claim looks for due events in shards that it locks only then, and keeps what it found in those that it gets',
    file: CLAIM,
    find: 'FOR UPDATE SKIP LOCKED',
    replace: '',
    also: {
      find: `    EXIT WHEN v_ids <> '{}' OR v_moved = 0;
  END LOOP;
`,
      replace: `    EXIT WHEN v_ids <> '{}' OR v_moved = 0;
  END LOOP;
  IF v_shards <> '{}' THEN
    v_shards := ARRAY(SELECT s.shard FROM outbox_shard s
                       WHERE s.shard = ANY (v_shards) AND (s.lease_token = p_token OR s.lease_until <= clock_timestamp() AND s.handed = '{}')
                       ORDER BY s.shard FOR UPDATE SKIP LOCKED);
    SELECT COALESCE(array_agg(u.event_id), '{}'), array_agg(u.seq), array_agg(u.shard) INTO v_ids, v_seqs, v_of
      FROM unnest(v_ids, v_seqs, v_of) AS u(event_id, seq, shard) WHERE u.shard = ANY (v_shards);
  END IF;
`,
    },
    killers: [{ file: RACES, test: 'claim first, but still looking: the settlement waits for it and changes nothing' }],
  },
  {
    name: 'settle-before-the-shard-is-locked',
    breaks: 'a settlement reads which shards it still leases without locking them',
    file: SETTLE,
    find: 'p_token ORDER BY s.shard FOR UPDATE',
    replace: 'p_token ORDER BY s.shard',
    killers: [{ file: RACES, test: 'claim first: the settlement waits for it and changes nothing' }],
  },
  {
    name: 'skip-the-read-committed-check',
    breaks: 'functions run in an isolation that hides what was committed meanwhile',
    file: 'src/store/postgres/functions/outbox_require_read_committed.sql',
    find: "IF current_setting('transaction_isolation') <> 'read committed' THEN",
    replace: 'IF false THEN',
    killers: [
      {
        file: 'test/integration/functions/operators.test.ts',
        test: 'is refused, because it could not see what was committed meanwhile',
      },
    ],
  },
  {
    name: 'lock-shards-in-another-order',
    breaks: 'a renewal locks its shards from the last to the first',
    file: RENEW,
    find: 'ORDER BY s.shard FOR UPDATE',
    replace: 'ORDER BY s.shard DESC FOR UPDATE',
    killers: [{ file: RACES, test: 'do not deadlock, whatever the order of the rows' }],
  },
  {
    name: 'settle-locks-shards-in-another-order',
    breaks: 'a settlement locks its shards from the last to the first',
    file: SETTLE,
    find: 'ORDER BY s.shard FOR UPDATE',
    replace: 'ORDER BY s.shard DESC FOR UPDATE',
    killers: [{ file: RACES, test: 'do not deadlock, whatever the order of the rows' }],
  },
  {
    name: 'watermark',
    breaks: 'a claim takes only events whose id is above that of the last one delivered',
    file: CLAIM,
    find: 'd.lane = 0 AND d.event_id <> ALL (v_busy)',
    replace:
      "d.lane = 0 AND d.event_id > COALESCE((SELECT r.event_id FROM outbox_receipt r ORDER BY r.event_id DESC LIMIT 1), '00000000-0000-0000-0000-000000000000') AND d.event_id <> ALL (v_busy)",
    killers: [
      {
        file: 'test/integration/relay-pass.test.ts',
        test: 'never sees what was rolled back, and delivers what commits while it runs',
      },
    ],
  },
  {
    name: 'retry-ignores-retry-at',
    breaks: 'an event that backs off is sent as soon as something else of its shard is',
    file: CLAIM,
    find: 'd.retry_at <= clock_timestamp() AND d.event_id <> ALL (v_busy)',
    replace: 'd.retry_at IS NOT NULL AND d.event_id <> ALL (v_busy)',
    killers: [{ file: CLAIM_AND_SETTLE, test: 'does not come before its time with what is ready in its shard' }],
  },
  {
    name: 'retry-without-delay',
    breaks: 'the delay that a retry is settled with is not kept',
    file: SETTLE,
    find: `+ COALESCE(v_row."delayMs", 0) * interval '1 millisecond'`,
    replace: '',
    killers: [{ file: CLAIM_AND_SETTLE, test: 'of a retry keeps the event until its time' }],
  },
  {
    name: 'charge-is-not-recorded',
    breaks: 'a charged attempt is settled as if it were not charged',
    file: SETTLE,
    find: 'CASE WHEN v_row.charge THEN 1 ELSE 0 END',
    replace: '0',
    killers: [{ file: CLAIM_AND_SETTLE, test: 'records every outcome once, and people can read it' }],
  },
  {
    name: 'ignore-the-changed-row-count',
    breaks: 'a relay takes a settlement for recorded, whatever the database says it changed',
    file: 'src/core/settlement.ts',
    find: 'const missing = Math.max(0, own - stillLeased)',
    replace: 'const missing = Math.max(0, Math.min(0, own - stillLeased))',
    killers: [
      { file: 'test/unit/settle-answer.test.ts', test: 'says how many shards were lost' },
      { file: WHEN_THINGS_GO_WRONG, test: 'is refused quietly by the fence when its lease ran out' },
    ],
  },
  {
    name: 'ignore-the-renewed-row-count',
    breaks: 'a relay takes its lease for renewed, whatever the database says it renewed',
    file: SERVE_BATCH,
    find: 'if (leased >= shards.length)',
    replace: 'if (leased >= 0)',
    killers: [{ file: 'test/integration/rules-lease.test.ts', test: 'sends nothing more, says so once, and records nothing' }],
  },
  {
    name: 'no-renewal',
    breaks: 'a lease is never renewed, however long a request is out',
    file: 'src/core/lease.ts',
    find: 'return this.renewalDueInMs() <= 0',
    replace: 'return false',
    killers: [
      { file: WHEN_THINGS_GO_WRONG, test: 'renews its lease while a request is out, so that nobody else takes its shards' },
    ],
  },
  {
    name: 'lease-counted-from-the-answer',
    breaks: 'a relay counts its lease from the answer to a renewal, so it believes in it longer than the database does',
    file: 'src/core/lease.ts',
    find: 'this.#untilMs = this.#sentAtMs +',
    replace: 'this.#untilMs = this.clock.nowMs() +',
    killers: [{ file: 'test/unit/lease.test.ts', test: 'ends before that of the database, however slow the call was' }],
  },
  {
    name: 'settle-everything-while-a-request-is-out',
    breaks: 'a batch that only waits for slow requests gives back all its shards',
    file: SERVE_BATCH,
    find: 'if (this.#partIsDue()) await this.#settle(this.#batch.finishedShards())',
    replace: 'if (this.#partIsDue()) await this.#settle(null)',
    killers: [{ file: WHEN_THINGS_GO_WRONG, test: 'keeps the shard of an event that is out' }],
  },
  {
    name: 'end-a-batch-while-a-request-is-out',
    breaks: 'a batch that ends for a failure settles without what is still in flight',
    file: SERVE_BATCH,
    find: 'await Promise.all(this.#requests)\n',
    replace: '\n',
    killers: [
      { file: WHEN_THINGS_GO_WRONG, test: 'waits for what is in flight, and records it, when the database refuses a renewal' },
    ],
  },
  {
    name: 'give-back-a-shard-in-flight',
    breaks: 'a shard counts as finished while one of its events is out',
    file: 'src/core/batch.ts',
    find: 'if (!this.#decided.has(id) && !this.#left.has(id)) open.add(event.shard)',
    replace: 'if (!this.#decided.has(id) && !this.#left.has(id) && !this.#sent.has(id)) open.add(event.shard)',
    killers: [
      {
        file: 'test/unit/batch.test.ts',
        test: 'gives back only shards in which nothing is ready, sent or waiting behind such an event',
      },
      { file: WHEN_THINGS_GO_WRONG, test: 'keeps the shard of an event that is out' },
    ],
  },
]
