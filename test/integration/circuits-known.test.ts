import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it } from 'vitest'
import { Circuits } from '../../src/core/circuits.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import type { OutboundEvent } from '../../src/core/event.js'
import { Sender } from '../../src/core/sender.js'
import { systemClock as clock, systemRandom as random } from '../../src/data-api/system-clock.js'
import { RecordingTelemetry } from '../support/recording-telemetry.js'
import { relayRig } from '../support/relay.js'
import { fault, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()
beforeEach(() => rig.reset())

const policy = { maxAttempts: 3, baseMs: 60_000, capMs: 60_000 }
const telemetry = new RecordingTelemetry()

/** One relay's knowledge of the circuits of two destinations that deny it access, with an event of each in hand. */
async function relay() {
  await rig.write(`SELECT 'Made', '{}', NULL, d FROM unnest(ARRAY['a', 'b']) d`)
  const token = randomUUID()
  const sizes = { maxRows: 10, maxBytes: 700_000, keyRows: 50, maxShards: 16, leaseSeconds: 30 }
  const { events } = await rig.store.claim({ token, owner: 'o', ...sizes, inFlight: null, suspectLeaseSeconds: null })
  const senders = new Map(
    ['a', 'b'].map((destination) => {
      const publisher = new ScriptedPublisher()
      publisher.script = () => ({ ...fault('AccessDeniedException'), configuration: true })
      const onRoom = () => undefined
      return [destination, new Sender({ destination, publisher, requestsInFlight: 1, policy, clock, random, telemetry, onRoom })]
    }),
  )
  const circuits = new Circuits({
    store: rig.store,
    senders,
    settings: { policy, releasePerSecond: 100 },
    clock,
    random,
    telemetry,
    hardDeadline: deadlineAfter(clock, 60_000),
    readyCount: () => 0,
  })
  /** Sends the event of a destination, and tells the circuits what was answered. */
  const send = async (destination: string) => {
    const sender = senders.get(destination)!
    const event = { ...events.find((one) => one.destination === destination)!, payload: '{}' } as OutboundEvent
    const load = () => Promise.resolve([{ eventId: event.id, bytes: 2, entry: event }])
    const publication = await sender.send(load, () => true)
    await circuits.heedAnswers(token, destination, [event.id], publication, sender)
  }
  const states = () => ['a', 'b'].map((destination) => circuits.open(destination)?.state)
  return { circuits, send, states }
}

it('two circuits that open at the same moment are both known to be open, whichever answer is the last', async () => {
  // both commit late, so neither sees what the other one changes
  await rig.api.db.query(`
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON outbox_circuit DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`)
  try {
    const { send, states } = await relay()
    await Promise.all([send('a'), send('b')])
    expect(states()).toEqual(['open', 'open'])
  } finally {
    await rig.api.db.query('DROP FUNCTION slow CASCADE')
  }
})

it('an answer that was asked for before a circuit was changed says nothing of it, and of the others what it says', async () => {
  const { circuits, send, states } = await relay()
  const askedAtMs = clock.nowMs()
  await send('a')
  const other = { destination: 'b', state: 'open', failures: 1, probeEvent: null, retryInMs: 60_000, aside: true } as const
  circuits.heed([other], askedAtMs)
  expect(states()).toEqual(['open', 'open'])
  circuits.heed([], clock.nowMs())
  expect(states()).toEqual([undefined, undefined])
})

it('what is put aside comes back soon, until an answer that was asked for later has shown that it is there no more', async () => {
  const { circuits } = await relay()
  const askedAtMs = clock.nowMs()
  circuits.putAside('a')
  circuits.heed([], askedAtMs)
  expect(circuits.releasing).toBe(true)
  rig.api.inject({ match: 'outbox_circuits', fault: { kind: 'drop-reply' } })
  const refreshed = circuits.refresh()
  expect(circuits.releasing).toBe(true)
  await refreshed
  expect(circuits.releasing).toBe(false)
})
