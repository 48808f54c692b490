import type { Mutant } from './mutant.js'

const CIRCUITS = 'src/core/circuits.ts'
const JUDGE = 'src/core/judge.ts'
const RETURN = 'src/store/postgres/functions/outbox_circuits.sql'
const CIRCUIT_TESTS = 'test/integration/functions/circuits.test.ts'
const PASS_TESTS = 'test/integration/relay-pass-circuit.test.ts'
const UNIT_TESTS = 'test/unit/circuit.test.ts'

/** What happens while a destination is down, and after. */
export const mutantsOfCircuits: readonly Mutant[] = [
  {
    name: 'half-open-lets-everything-through',
    breaks: 'when the cool-down is over everything is sent, not one probe',
    file: CIRCUITS,
    find: 'return circuit !== undefined && circuit.probeEvent !== eventId',
    replace: "return circuit !== undefined && circuit.state === 'open' && circuit.probeEvent !== eventId",
    killers: [
      { file: 'test/integration/half-open.test.ts', test: 'a half-open circuit lets its probe through, and nothing else' },
    ],
  },
  {
    name: 'send-to-an-open-circuit',
    breaks: 'a relay that did not open the circuit itself goes on sending',
    file: CIRCUITS,
    find: "return circuit?.state === 'closed' ? undefined : circuit",
    replace: 'return undefined as typeof circuit',
    killers: [{ file: PASS_TESTS, test: 'is shared: another relay sends nothing while it is open' }],
  },
  {
    name: 'charge-the-probe',
    breaks: 'an outage costs the event that probes the destination an attempt for each try',
    file: JUDGE,
    find: 'charge: false',
    replace: 'charge: true',
    killers: [{ file: UNIT_TESTS, test: 'is to put it aside without charge when the circuit is open' }],
  },
  {
    name: 'probe-without-cool-down',
    breaks: 'the probe is sent again at once, however long the destination has been down',
    file: JUDGE,
    find: 'delayMs: circuit.retryInMs',
    replace: 'delayMs: 0',
    killers: [{ file: UNIT_TESTS, test: 'is to put it aside without charge when the circuit is open' }],
  },
  {
    name: 'slow-is-not-down',
    breaks: 'a request that took its whole timeout counts as one fault among three',
    file: 'src/core/circuit.ts',
    find: 'fault.configuration || fault.timedOut ||',
    replace: 'fault.configuration ||',
    killers: [{ file: UNIT_TESTS, test: 'opens with the third fault in a row' }],
  },
  {
    name: 'one-probe-for-ever',
    breaks: 'an event that its destination does not bear probes it again and again, and keeps the circuit open',
    file: 'src/store/postgres/functions/outbox_circuit_fault.sql',
    find: 'v_next := outbox_circuit_next(p_destination, p_event);',
    replace: 'v_next := NULL;',
    killers: [{ file: CIRCUIT_TESTS, test: 'of the probe lets the next event that is aside be the probe' }],
  },
  {
    name: 'fault-counted-twice',
    breaks: 'a fault that is reported again after its answer was lost makes the cool-down longer',
    file: 'src/store/postgres/functions/outbox_circuit_fault.sql',
    find: 'AND v_circuit.failures = p_failures AND',
    replace: 'AND',
    killers: [{ file: CIRCUIT_TESTS, test: 'opens the circuit, and changes nothing when its answer was lost' }],
  },
  {
    name: 'open-a-circuit-without-a-lease',
    breaks: 'a relay that lost its lease long ago opens the circuit of a destination that is back',
    file: 'src/store/postgres/functions/outbox_circuit_fault.sql',
    find: '(SELECT true FROM outbox_shard s WHERE s.lease_token = p_token LIMIT 1) IS TRUE AND',
    replace: '',
    killers: [{ file: CIRCUIT_TESTS, test: 'or a success that a relay reports without its lease changes nothing' }],
  },
  {
    name: 'close-for-any-event',
    breaks: 'an answer that comes late, for an event that is not the probe, closes the circuit',
    file: 'src/store/postgres/functions/outbox_circuit_close.sql',
    find: 'c.probe_event = p_event AND EXISTS',
    replace: 'EXISTS',
    killers: [{ file: CIRCUIT_TESTS, test: 'of an event that is not the probe any more changes nothing' }],
  },
  {
    name: 'aside-without-a-circuit',
    breaks: 'what is put aside has no circuit, so nothing brings it back',
    file: 'src/store/postgres/functions/outbox_settle.sql',
    find: "WHERE r.outcome = 'hold'",
    replace: 'WHERE false',
    killers: [{ file: CIRCUIT_TESTS, test: 'always has a circuit that brings it back, though nothing failed' }],
  },
  {
    name: 'bring-back-all-at-once',
    breaks: 'a destination that is back gets all that was put aside at once, from every relay',
    file: RETURN,
    find: 'floor(extract(epoch FROM v_now - v_from) * p_per_second)',
    replace: '1000000',
    killers: [{ file: CIRCUIT_TESTS, test: 'comes back no faster than so many a second, in all calls together' }],
  },
  {
    name: 'bring-back-the-newest-first',
    breaks: 'of what was put aside the newest comes back first',
    file: RETURN,
    find: 'ORDER BY d.seq LIMIT greatest',
    replace: 'ORDER BY d.seq DESC LIMIT greatest',
    killers: [{ file: CIRCUIT_TESTS, test: 'is closed by its probe: all come back in order' }],
  },
]
