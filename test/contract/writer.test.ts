import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { InvalidEventError, KeyBusyError, SqlError } from '../../src/core/errors.js'
import { createOutbox, type NewEvent, type Outbox, type OutboxOptions } from '../../src/writer/index.js'
import { startServiceDatabase, type ServiceDatabase } from '../support/outbox-data-api.js'

let service: ServiceDatabase
let outbox: Outbox

beforeAll(async () => {
  service = await startServiceDatabase()
  outbox = createOutbox({ database: service.database })
})

const write = (event: NewEvent): Promise<readonly string[]> => outbox.transaction((tx) => tx.writeEvents([event]))
const rowOf = async (id: string | undefined): Promise<Record<string, unknown> | undefined> =>
  (await service.server.db.query('SELECT *, available_at::text AS available FROM outbox WHERE id = $1', [id]))[0]

describe('Every field arrives in its column', () => {
  test('when all are given', async () => {
    const [id] = await write({
      eventType: 'OrderCreated',
      payload: '{"orderId": 12345678901234567890, "a":1, "a":2}',
      eventVersion: 3,
      aggregateType: 'order',
      aggregateId: '42',
      orderingKey: 'order-42',
      destination: 'queue',
      headers: { tenant: 't1' },
      idempotencyKey: 'k1',
      availableAt: new Date('2030-01-02T03:04:05.678Z'),
    })
    expect(await rowOf(id)).toMatchObject({
      id,
      event_type: 'OrderCreated',
      payload: '{"orderId": 12345678901234567890, "a":1, "a":2}',
      event_version: 3,
      aggregate_type: 'order',
      aggregate_id: '42',
      ordering_key: 'order-42',
      destination: 'queue',
      headers: '{"tenant":"t1"}',
      idempotency_key: 'k1',
      available: '2030-01-02 03:04:05.678+00',
    })
  })

  test('and the others take their defaults', async () => {
    const [id] = await write({ eventType: 'OrderCreated', payload: null })
    expect(await rowOf(id)).toMatchObject({
      payload: 'null',
      event_version: 1,
      ordering_key: null,
      headers: null,
      available_at: null,
    })
  })

  test('payloads up to a million bytes, byte for byte', async () => {
    const payload = JSON.stringify({ text: '\u{1f4e6}ä'.repeat(166_000) })
    const [id] = await write({ eventType: 'Large', payload })
    expect((await rowOf(id))?.['payload']).toBe(payload)
  })

  test('any JSON value, as JSON.stringify writes it', async () => {
    const values = fc.jsonValue({ stringUnit: 'binary' }).filter((value) => typeof value !== 'string')
    await fc.assert(
      fc.asyncProperty(values, async (payload) => {
        const [id] = await write({ eventType: 'Any', payload })
        expect((await rowOf(id))?.['payload']).toBe(JSON.stringify(payload))
      }),
      { numRuns: 30, examples: [[{ nul: '\0', half: '\ud800', high: '\uffff' }]] },
    )
  })
})

describe('The writer refuses what the table would refuse, and nothing else', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom('', 'x'.repeat(255), 'x'.repeat(256), 'ä'.repeat(127), 'ä'.repeat(128), 'a\0b'),
  )
  const events = fc.record({
    eventType: texts,
    payload: fc.constantFrom(
      '{}',
      '[]',
      'null',
      '1e400',
      ' "x"',
      '"x"',
      '{',
      '',
      '{"a":1}x',
      '\ufeff{}',
      '{"a":"\\u0000\\ud800"}',
      '01',
      '[1,]',
      '\u00a0{}',
    ),
    orderingKey: fc.option(texts, { nil: undefined }),
    aggregateId: fc.option(texts, { nil: undefined }),
  })

  test('whatever the event', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (event) => {
        const byWriter = await write(event).then(
          () => 'taken',
          (error: unknown) => (error instanceof InvalidEventError ? 'refused' : `failed: ${String(error)}`),
        )
        const byTable = await service.server.db
          .query('INSERT INTO outbox (event_type, payload, ordering_key, aggregate_id) VALUES ($1, $2, $3, $4)', [
            event.eventType,
            event.payload,
            event.orderingKey,
            event.aggregateId,
          ])
          .then(
            () => 'taken',
            () => 'refused',
          )
        expect({ event, verdict: byWriter }).toEqual({ event, verdict: byTable })
      }),
      { numRuns: 100 },
    )
  })
})

const destinations: OutboxOptions['destinations'] = { bus: { type: 'eventbridge', eventBusName: 'bus', maxBytes: 1_024 } }

describe('An event that cannot be written', () => {
  test('because another transaction holds its ordering key says so by name, once every attempt has met it', async () => {
    const holder = await service.server.db.connect()
    await holder.query('BEGIN')
    await holder.query(`INSERT INTO outbox (event_type, payload, ordering_key) VALUES ('Held', '{}', 'busy-key')`)
    const event = { eventType: 'Waits', payload: {}, orderingKey: 'busy-key' }
    try {
      const error = await outbox
        .transaction((tx) => tx.writeEvents([event]), { maxAttempts: 1 })
        .catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(KeyBusyError)
      expect(error).toBeInstanceOf(SqlError)
      expect(error).toMatchObject({ name: 'KeyBusyError', code: 'KeyBusy', kind: 'rolled-back', sqlState: '55P03' })
      expect((error as Error).message).toMatch(
        /^another transaction holds an ordering key or an idempotency key of these events; run the transaction again \([^\n]+\)$/,
      )
      expect((error as Error).message).not.toContain('busy-key')
    } finally {
      await holder.query('ROLLBACK')
    }
  })

  test.each<[string, Omit<OutboxOptions, 'database'>, NewEvent, string]>([
    ['one without a destination', { destinations }, { eventType: 'A', payload: {} }, 'eventType'],
    [
      'one for a destination that is not there',
      { destinations },
      { eventType: 'A', payload: {}, destination: 'buss' },
      'destination',
    ],
    [
      'one too large for its destination',
      { destinations, default: 'bus' },
      { eventType: 'A', payload: 'x'.repeat(1_024).split('') },
      'payload',
    ],
    ['one too large for any', {}, { eventType: 'A', payload: ['x'.repeat(1_000_000)] }, 'payload'],
  ])(
    'because it could never be delivered is refused before the database hears of it: %s',
    async (_what, options, event, field) => {
      const strict = createOutbox({ database: service.database, ...options })
      service.server.requests.length = 0
      const { transactionId } = await service.database.begin()
      await expect(
        strict.writeEvents({ transactionId }, [{ eventType: 'Good', payload: {}, destination: 'bus' }, event]),
      ).rejects.toMatchObject({
        code: 'InvalidEvent',
        field,
      })
      await service.database.joinTransaction(transactionId).rollback()
      await expect(strict.transaction((tx) => tx.writeEvents([event]))).rejects.toMatchObject({ code: 'InvalidEvent', field })
      expect(service.server.requests.filter(({ operation }) => operation === 'Execute')).toEqual([])
    },
  )

  test('for its neighbours: a request has 4 MiB', async () => {
    const large = { eventType: 'Large', payload: { text: 'x'.repeat(900_000) } }
    await expect(outbox.transaction((tx) => tx.writeEvents([large, large, large, large, large]))).rejects.toThrow(
      /the 5 events of the transaction make a request of \d+ bytes, and the RDS Data API takes \d+/,
    )
    expect((await outbox.transaction((tx) => tx.writeEvents([large, large, large, large]))).length).toBe(4)
  })
})
