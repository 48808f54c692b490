import { expect, it } from 'vitest'
import { relayRig } from '../support/relay.js'
import { acceptAll, ScriptedPublisher } from '../support/scripted-publisher.js'

const rig = await relayRig()

it('a relay sends what another one had in hand when it ended one at a time, each marked as started before', async () => {
  await rig.write(`SELECT 'Made', '{}', NULL, NULL FROM generate_series(1, 5)`)
  await rig.api.db.query(`UPDATE outbox_delivery SET shard = 3;
    SELECT * FROM outbox_claim(gen_random_uuid(), 'gone', 500, 700000, 50, 16, 30, NULL);
    UPDATE outbox_shard SET lease_until = '-infinity' WHERE lease_token IS NOT NULL`)
  const queue = new ScriptedPublisher()
  const started: string[][] = []
  queue.script = async (events, request) => {
    const rows = await rig.api.db.query<{ id: string }>('SELECT event_id AS id FROM outbox_delivery WHERE starts = 1')
    started.push(rows.map(({ id }) => id))
    return acceptAll(events, request)
  }
  await rig.drain({ publishers: { queue } })
  expect(queue.requests).toHaveLength(5)
  expect(started).toEqual(queue.requests.map((events) => events.map(({ id }) => id)))
})
