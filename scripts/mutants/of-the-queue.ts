import type { Mutant } from './mutant.js'

const OPERATE = 'src/store/postgres/functions/outbox_operate.sql'
const FREE_FOLLOWERS = 'src/store/postgres/functions/outbox_free_followers.sql'
const SETTLE = 'src/store/postgres/functions/outbox_settle.sql'
const UNIT_OF_WORK = 'src/data-api/unit-of-work.ts'
const LANES_AND_CHAINS = 'test/integration/functions/lanes-and-chains.test.ts'
const OPERATORS = 'test/integration/functions/operators.test.ts'

/** What comes into the queue, how it waits there, and how operators and cleanup take it out. */
export const mutantsOfTheQueue: readonly Mutant[] = [
  {
    name: 'swallow-an-ambiguous-commit',
    breaks: 'a commit without an answer is reported as committed, without a look',
    file: UNIT_OF_WORK,
    find: 'const outcome = await lookUp(database, clock, statement, sentAtMs)\n',
    replace: "const outcome = 'committed' as CommitOutcome\n",
    killers: [{ file: 'test/integration/writer.test.ts', test: 'stays ambiguous if there is no event to look up' }],
  },
  {
    name: 'repeat-a-transaction-in-doubt',
    breaks: 'a transaction whose commit nobody can tell is run again: its events come twice, with new ids',
    file: UNIT_OF_WORK,
    find: "outcome === 'aborted' ||",
    replace: "outcome === 'aborted' || outcome === 'unknown' ||",
    killers: [{ file: 'test/integration/writer.test.ts', test: 'stays ambiguous if there is no event to look up' }],
  },
  {
    name: 'retry-an-insert-with-a-new-id',
    breaks: 'an insert that is sent again after a timeout makes a new id, so the event is there twice',
    file: 'src/store/postgres/insert-events.ts',
    find: 'SELECT e.id, e.event_type',
    replace: 'SELECT gen_random_uuid(), e.event_type',
    killers: [{ file: 'test/contract/store.test.ts', test: 'events written twice are there once' }],
  },
  {
    name: 'seq-without-the-lock-of-its-key',
    breaks: 'writers of one key draw their seq side by side, so its order is not that of their commits',
    file: 'src/store/postgres/functions/outbox_enqueue.sql',
    find: 'PERFORM outbox_lock_keys(ARRAY(SELECT DISTINCT ordering_key FROM new_events WHERE ordering_key IS NOT NULL));',
    replace: '',
    killers: [{ file: 'test/integration/races/writers-and-operators.test.ts', test: 'two keys in opposite order' }],
  },
  {
    name: 'hold-without-the-key-block',
    breaks: 'later events of a key go on while an earlier one is put aside for its destination',
    file: SETTLE,
    find: 'blocks_key = d.ordering_key IS NOT NULL AND',
    replace: "blocks_key = v_row.outcome <> 'hold' AND d.ordering_key IS NOT NULL AND",
    killers: [{ file: LANES_AND_CHAINS, test: 'move aside, once, and come back in order after' }],
  },
  {
    name: 'retry-without-the-key-block',
    breaks: 'later events of a key go on while an earlier one backs off',
    file: SETTLE,
    find: 'blocks_key = d.ordering_key IS NOT NULL AND',
    replace: "blocks_key = v_row.outcome <> 'retry' AND d.ordering_key IS NOT NULL AND",
    killers: [{ file: LANES_AND_CHAINS, test: 'wait for one that backs off, however long' }],
  },
  {
    name: 'release-followers-in-wrong-order',
    breaks: 'of a long chain the last followers come back first',
    file: FREE_FOLLOWERS,
    find: 'ORDER BY d.seq LIMIT 501',
    replace: 'ORDER BY d.seq DESC LIMIT 501',
    killers: [{ file: LANES_AND_CHAINS, test: 'move aside, once, and come back in order after' }],
  },
  {
    name: 'lose-the-release-chain-after-500',
    breaks: 'the 500th follower does not block its key, so nobody brings back those behind it',
    file: FREE_FOLLOWERS,
    find: 'blocks_key = (d.event_id IS NOT DISTINCT FROM v_last)',
    replace: 'blocks_key = false',
    killers: [{ file: LANES_AND_CHAINS, test: 'move aside, once, and come back in order after' }],
  },
  {
    name: 'redrive-with-a-new-id',
    breaks: 'a failed event is written once more, with an id of its own, in place of being sent again',
    file: OPERATE,
    find: `WITH r AS (UPDATE outbox_delivery d SET lane = 0, attempts = 0, starts = 0, start_token = NULL, failed_at = NULL, due_at = clock_timestamp()
                WHERE d.event_id = ANY (v_ids) AND (d.lane = 3) IS TRUE RETURNING d.event_id)`,
    replace: `WITH r AS (DELETE FROM outbox_delivery d WHERE d.event_id = ANY (v_ids) AND (d.lane = 3) IS TRUE RETURNING d.event_id),
         again AS (INSERT INTO outbox (event_type, event_version, aggregate_type, aggregate_id, ordering_key, destination, headers, payload)
                   SELECT o.event_type, o.event_version, o.aggregate_type, o.aggregate_id, o.ordering_key, o.destination, o.headers, o.payload
                     FROM outbox o JOIN r ON r.event_id = o.id)`,
    killers: [{ file: OPERATORS, test: 'redrives an event with the id, the key and the place that it had' }],
  },
  {
    name: 'replay-without-a-new-number',
    breaks: 'a replay does not count, so that nothing tells it from what was published before',
    file: 'src/store/postgres/functions/outbox_replay.sql',
    find: 'CAST(r.replays + 1 AS smallint)',
    replace: 'CAST(r.replays AS smallint)',
    killers: [{ file: OPERATORS, test: 'sends delivered events again, with the same id' }],
  },
  {
    name: 'keep-shards-locked-in-vain',
    breaks: 'an act of an operator waits for other shards with those in hand that had nothing left for it',
    file: OPERATE,
    find: `      RAISE SQLSTATE 'OB001';
`,
    replace: '',
    killers: [
      { file: 'test/integration/races/writers-and-operators.test.ts', test: 'gives up the shard that it waited for in vain' },
    ],
  },
  {
    name: 'audit-outside-the-transaction',
    breaks: 'an act of an operator is kept although its audit row cannot be written',
    file: OPERATE,
    find: `  INSERT INTO outbox_audit (actor, action, reason, filter, events, event_ids)
  SELECT p_actor, p_action, p_reason, v_filter, COALESCE(cardinality(v_ids), 0), to_json(COALESCE(v_ids, '{}'));`,
    replace: `  BEGIN
    INSERT INTO outbox_audit (actor, action, reason, filter, events, event_ids)
    SELECT p_actor, p_action, p_reason, v_filter, COALESCE(cardinality(v_ids), 0), to_json(COALESCE(v_ids, '{}'));
  EXCEPTION WHEN check_violation THEN NULL;
  END;`,
    killers: [{ file: OPERATORS, test: 'is undone, whatever it is, when its audit row cannot be written' }],
  },
  {
    name: 'cleanup-without-the-undelivered-check',
    breaks: 'cleanup deletes what is old enough, delivered or not',
    file: 'src/store/postgres/functions/outbox_cleanup.sql',
    find: `SELECT r.event_id FROM outbox_receipt r
                  WHERE r.delivered_at < clock_timestamp() - p_retention_seconds * interval '1 second'
                  ORDER BY r.delivered_at LIMIT`,
    replace: `SELECT o.id FROM outbox o
                  WHERE o.created_at < clock_timestamp() - p_retention_seconds * interval '1 second'
                  ORDER BY o.created_at LIMIT`,
    killers: [{ file: OPERATORS, test: 'deletes what is past retention, in bounded batches, and never what is not delivered' }],
  },
  {
    name: 'backlog-age-from-created-at',
    breaks: 'the backlog ages by the clocks of the writers',
    file: 'src/store/postgres/functions/outbox_backlog.sql',
    find: 'min(d.due_at) FILTER',
    replace: 'min((SELECT o.created_at FROM outbox o WHERE o.id = d.event_id)) FILTER',
    killers: [{ file: LANES_AND_CHAINS, test: 'ages by the database clock while nothing is delivered' }],
  },
  {
    name: 'backlog-age-of-ready-events-alone',
    breaks: 'what backs off or is held does not count as overdue',
    file: 'src/store/postgres/functions/outbox_backlog.sql',
    find: 'min(d.due_at) FILTER (WHERE d.lane < 3',
    replace: 'min(d.due_at) FILTER (WHERE d.lane < 1',
    killers: [
      { file: LANES_AND_CHAINS, test: 'counts every state, held and backing-off events among the due ones by their age' },
    ],
  },
]
