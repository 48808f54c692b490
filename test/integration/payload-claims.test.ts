import { beforeEach, describe, expect, it } from 'vitest'
import { randomUUID } from 'node:crypto'
import { SqlError } from '../../src/core/errors.js'
import type { SettledEvent } from '../../src/core/settlement.js'
import { DATA_API_LIMITS } from '../../src/local/data-api/limits.js'
import { headersOf, payloadOf, type Alphabet } from '../support/payloads.js'
import { relayRig } from '../support/relay.js'

// the Data API's own limits
const rig = await relayRig()
beforeEach(() => rig.reset())

/** `count` events whose every column is as long as the table takes it. */
const writeWidest = (count: number, payload: string, headers = headersOf(8192)) =>
  rig.api.db.query(
    `INSERT INTO outbox (event_type, event_version, aggregate_type, aggregate_id, ordering_key, destination, headers, payload, idempotency_key)
     SELECT repeat('t', 255), -2147483648, repeat('a', 255), repeat('i', 255), left(i || repeat('k', 255), 255), repeat('d', 255), $2, $1,
            left(gen_random_uuid() || repeat('p', 255), 255)
       FROM generate_series(1, $3) i`,
    [payload, headers, count],
  )

const claim = (token: string = randomUUID(), maxBytes = 700_000) =>
  rig.store.claim({
    token,
    owner: 'test',
    maxRows: 1000,
    maxBytes,
    keyRows: 50,
    maxShards: 16,
    leaseSeconds: 30,
    inFlight: null,
    suspectLeaseSeconds: null,
  })

/** What the last claim's rows count against the Data API's limits: the text of each value. */
async function rowsOfClaim(token: string): Promise<{ readonly largest: number; readonly all: number; readonly counted: number }> {
  const [sizes] = await rig.api.db.query<{ largest: number; all: number }>(
    `SELECT max(bytes)::int AS largest, sum(bytes)::int AS all
       FROM (SELECT octet_length(concat(id, shard, seq, event_type, event_version, aggregate_type, aggregate_id, ordering_key, destination, headers,
                    attempts, starts, replays, reclaimed_from, suspects_wait, released, created_at_ms, due_at_ms, payload_bytes, payload)) AS bytes
               FROM outbox_claim(CAST($1 AS uuid), 'test', 1000, 800000, 50, 16, 30, NULL)) r`,
    [token],
  )
  const [row] = await rig.api.db.query<{ counted: number }>('SELECT sum(row_bytes)::int AS counted FROM outbox_delivery')
  return { ...sizes!, ...row! }
}

describe('a row that a claim returns', () => {
  it.each<[number, Alphabet]>([
    [1, 'ascii'],
    [47_999, 'four-byte'],
    [48_000, 'ascii'],
    [48_000, 'four-byte'],
    [48_001, 'four-byte'],
    [1_000_000, 'ascii'],
  ])(
    'stays below 64 KB, and below what it was counted for, with a payload of %i bytes (%s) and every column at its longest',
    async (bytes, alphabet) => {
      await writeWidest(10, payloadOf(bytes, alphabet))
      const token = randomUUID()
      const { events } = await claim(token)
      expect(events).toHaveLength(10)
      expect(events.map(({ payload }) => payload)).toEqual(
        Array.from({ length: 10 }, () => (bytes > 48_000 ? null : payloadOf(bytes, alphabet))),
      )
      const { largest, all, counted } = await rowsOfClaim(token)
      expect(largest).toBeLessThan(DATA_API_LIMITS.maxRowBytes)
      expect(all).toBeLessThanOrEqual(counted)
    },
  )
})

describe('the answer to a claim', () => {
  it.each([
    ['700,000 bytes, the default,', 700_000],
    ['800,000 bytes, the most that can be set,', 800_000],
  ])(
    'stays below 1 MiB when %s are asked for, and comes as near to them as whole rows allow, whatever the sizes',
    async (_, maxBytes) => {
      await writeWidest(20, payloadOf(48_000, 'four-byte'))
      await writeWidest(200, payloadOf(48_001, 'four-byte'))
      await writeWidest(20, payloadOf(30_000, 'ascii'), '{}')
      await writeWidest(500, '1', '{}')
      for (let left = 740; left > 0;) {
        const token = randomUUID()
        const { events } = await claim(token, maxBytes)
        const counted = await rig.api.db.query<{ bytes: number }>(
          'SELECT sum(row_bytes)::int AS bytes FROM outbox_delivery WHERE event_id = ANY ($1)',
          [events.map(({ id }) => id)],
        )
        expect(counted[0]!.bytes).toBeLessThanOrEqual(maxBytes)
        if (left > events.length) expect(counted[0]!.bytes).toBeGreaterThan(maxBytes - DATA_API_LIMITS.maxRowBytes)
        left -= events.length
        await rig.store.settle({ token, events: events.map(published), done: null })
      }
    },
  )
})

describe('a settlement', () => {
  it.each([
    ['quotes, which are escaped twice on the way', '"'],
    ['control characters', '\u0001'],
  ])('of as many events as a batch can hold stays below 4 MiB when every error is a long text of %s', async (_, character) => {
    const token = randomUUID()
    const error = character.repeat(2000)
    await rig.api.db.query(`INSERT INTO outbox (event_type, payload) SELECT 't', '{}' FROM generate_series(1, 1000)`)
    const { events } = await claim(token)
    const settled = events.map((event): SettledEvent => ({
      id: event.id,
      attempts: 0,
      outcome: { kind: 'retry', delayMs: 60_000, charge: false, destination: 'd'.repeat(255), errorCode: 'Broken', error },
    }))
    // twice the rows of the largest claim, and the last one that a batch may still make
    const absent = Array.from({ length: 3000 - settled.length }, () => ({ ...settled[0]!, id: randomUUID() }))
    const answer = await rig.store
      .settle({ token, events: [...settled, ...absent], done: null })
      .catch((failed: unknown) => failed)
    expect(answer).not.toBeInstanceOf(SqlError)
    expect(answer).toMatchObject({ retried: events.length })
    const [{ left } = { left: '' }] = await rig.api.db.query<{ left: string }>(
      'SELECT DISTINCT left(last_error, 20) AS "left" FROM outbox_delivery',
    )
    expect(left).toBe(character.repeat(20))
  })
})

function published(event: { readonly id: string; readonly attempts: number }): SettledEvent {
  return { id: event.id, attempts: event.attempts, outcome: { kind: 'published', destination: 'd', messageId: 'm' } }
}
