import type { Mutant } from './mutant.js'

const SUSPECTS = 'test/integration/functions/suspects.test.ts'

/** What becomes of events that a relay had in hand when it ended without a word. */
export const mutantsOfCrashes: readonly Mutant[] = [
  {
    name: 'count-a-timeout-as-a-crash',
    breaks: 'an invocation that runs out of time, and gives its suspect back, counts as one that it ended',
    file: 'src/store/postgres/functions/outbox_return_suspects.sql',
    find: 'SET starts = d.starts - 1, start_token = NULL',
    replace: 'SET start_token = NULL',
    killers: [{ file: SUSPECTS, test: 'is not counted if a settlement gave the event back, sent or not' }],
  },
  {
    name: 'crashes-outlive-an-outcome',
    breaks: 'an event that was refused or put aside since keeps the crashes that it was suspected of',
    file: 'src/store/postgres/functions/outbox_settle.sql',
    find: 'ELSE 0 END ELSE 0 END,',
    replace: 'ELSE 0 END ELSE d.starts END,',
    killers: [{ file: SUSPECTS, test: 'is forgotten with' }],
  },
  {
    name: 'count-a-start-twice',
    breaks: 'a start whose answer was lost, and that is sent again, counts as two',
    file: 'src/store/postgres/functions/outbox_start.sql',
    find: 'CASE WHEN d.start_token IS DISTINCT FROM p_token THEN 1 ELSE 0 END',
    replace: '1',
    killers: [{ file: 'test/integration/functions/claim-and-settle.test.ts', test: 'counts once a token' }],
  },
  {
    name: 'suspects-together',
    breaks: 'what a relay had in hand when it ended is handed out together, to the next one that claims',
    file: 'src/store/postgres/functions/outbox_claim.sql',
    find: "AND s.handed = '{}'",
    replace: '',
    killers: [{ file: SUSPECTS, test: 'comes one event at a time, each with a lease of its own' }],
  },
  {
    name: 'suspects-beside-others',
    breaks: 'a relay takes a suspect while it has other events in hand, which would be doubled if it ends',
    file: 'src/core/relay-pass.ts',
    find: 'const takesSuspects = servers.size < 1 &&',
    replace: 'const takesSuspects = servers.size < 99 &&',
    killers: [{ file: 'test/integration/relay-pass-suspects.test.ts', test: 'until that is answered' }],
  },
  {
    name: 'suspects-keep-the-turn',
    breaks: 'as long as there are suspects, a relay serves nothing else, however slow their destination is',
    file: 'src/core/relay-pass.ts',
    find: 'clock.nowMs() - shared.suspectsSinceMs > SUSPECTS_MS',
    replace: 'clock.nowMs() - shared.suspectsSinceMs > 1000 * SUSPECTS_MS',
    killers: [{ file: 'test/integration/relay-pass-suspects.test.ts', test: 'leave others their turn' }],
  },
  {
    name: 'suspects-wait-for-all-of-a-key',
    breaks: 'while suspects wait for a relay to end what it has in hand, it goes on through all that it has',
    file: 'src/core/serve-batch.ts',
    find: '|| this.#givesWay()',
    replace: '',
    killers: [{ file: 'test/integration/relay-pass-suspects.test.ts', test: 'do not wait for all' }],
  },
  {
    name: 'count-a-failover-as-a-crash',
    breaks: 'an event that a relay had in hand when the database server went down counts as having ended that relay',
    file: 'src/store/postgres/functions/outbox_claim_suspect.sql',
    find: 'v_shard.served_at < pg_postmaster_start_time()',
    replace: 'v_shard.served_at IS NULL',
    killers: [{ file: SUSPECTS, test: 'when the server went down' }],
  },
  {
    name: 'send-a-suspect-before-it-is-marked',
    breaks: 'a suspect is sent without having been marked as started, so that its crashes are never counted',
    file: 'src/core/serve-batch.ts',
    find: '(await startSuspect(this.context, this.#batch.token, this.#lease, suspect))',
    replace: 'suspect.starts >= 0',
    killers: [{ file: 'test/integration/suspect-start.test.ts', test: 'one at a time, each marked as started before' }],
  },
]
