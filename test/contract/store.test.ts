import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { deadlineAfter } from '../../src/core/deadline.js'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase } from '../../src/data-api/database.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { checkSchema, readSchemaCheck, schemaVersion } from '../../src/store/check-schema.js'
import { migrate, migrateInbox } from '../../src/store/migrator.js'
import { eventsByIdempotencyKeyStatement, insertEventsStatement } from '../../src/store/postgres/insert-events.js'
import { recordHandledStatement } from '../../src/store/postgres/handle-once.js'
import { createOutboxStore } from '../../src/store/postgres/outbox-store.js'
import { listEvents, readTableSizes, showEvent } from '../../src/store/postgres/status.js'
import { startTestDataApi } from '../support/data-api.js'
import { claimRequest, describeOutboxStore, newEvent } from './store-contract.js'

const schema = 'billing'
const api = await startTestDataApi()
const client = createRdsDataClient(api.clientConfig)
const databaseAs = (secretArn: string) =>
  createDataApiDatabase({ client, resourceArn: api.resourceArn, secretArn, database: api.database })
const database = databaseAs(api.secretArn)
const options = { schema, clock: systemClock, deadline: deadlineAfter(systemClock, 60_000) }
await migrate(database, options)

// Each part with the least rights, as in an account; the Data API logs in as these.
const login = async (roles: string) => {
  const user = `login_${randomUUID().slice(0, 8)}`
  await api.db.query(`CREATE ROLE ${user} LOGIN IN ROLE ${roles}`)
  return databaseAs(api.secretFor(user))
}
const relay = await login('outbox_relay, outbox_cleanup')
const writer = await login('outbox_writer')
const operator = await login('outbox_operator')
const store = createOutboxStore(relay, { schema })

const write = async (events: Parameters<typeof insertEventsStatement>[0]) => {
  await writer.execute(insertEventsStatement(events, schema))
}
const empty = async () => {
  await api.db.query(
    `TRUNCATE ${schema}.outbox, ${schema}.outbox_delivery, ${schema}.outbox_receipt, ${schema}.outbox_circuit, ${schema}.outbox_audit;
     UPDATE ${schema}.outbox_shard SET lease_token = NULL, lease_until = '-infinity', reclaimed_from = NULL, handed = '{}', settled_token = NULL`,
  )
}
const expireLeases = async () => {
  await api.db.query(`UPDATE ${schema}.outbox_shard SET lease_until = '-infinity'`)
}

describeOutboxStore('PostgreSQL through the Data API', { store, write, empty, expireLeases })

test('a sequence number beyond 2^53 keeps every digit', async () => {
  await empty()
  await api.db.query(`ALTER SEQUENCE ${schema}.outbox_delivery_seq RESTART 9007199254740993`)
  await write([newEvent()])
  const { events } = await store.claim(claimRequest())
  expect(events.map(({ seq }) => seq)).toEqual([9007199254740993n])
  await api.db.query(`ALTER SEQUENCE ${schema}.outbox_delivery_seq RESTART 1`)
})

test('a claim whose answer was lost is sent again, says so, and returns the same events', async () => {
  await empty()
  await write([newEvent(), newEvent()])
  api.inject({ operation: 'Execute', match: 'outbox_claim', fault: { kind: 'drop-reply' } })
  const { events, repeated } = await store.claim(claimRequest())
  expect(repeated).toBe(true)
  expect(events).toHaveLength(2)
})

test('a settlement whose answer was lost is recognised as a repeat by its answer', async () => {
  await empty()
  await write([newEvent()])
  const request = claimRequest()
  const [event] = (await store.claim(request)).events
  const outcome = { kind: 'published', destination: 'queue', messageId: 'm' } as const
  api.inject({ operation: 'Execute', match: 'outbox_settle', fault: { kind: 'drop-reply' } })
  expect(
    await store.settle({ token: request.token, events: [{ id: event!.id, attempts: 0, outcome }], done: null }),
  ).toMatchObject({ published: 0, givenBack: 0, kept: 0, settledBefore: 1 })
  expect(await store.backlog()).toMatchObject({ depth: 0 })
})

test('an event whose row was deleted by hand is claimed without a type, to be failed', async () => {
  await empty()
  await write([newEvent()])
  await api.db.query(`DELETE FROM ${schema}.outbox`)
  expect((await store.claim(claimRequest())).events).toMatchObject([{ eventType: null, payload: null }])
})

test('events written twice are there once, in the order of the list, and the second time answers no id', async () => {
  await empty()
  const events = Array.from({ length: 20 }, (_, number) =>
    newEvent({ payload: String(number), orderingKey: 'k', idempotencyKey: `i${number}` }),
  )
  const statement = insertEventsStatement(events, schema)
  expect((await writer.execute(statement)).rows).toMatchObject(events.map(({ id }) => ({ id })))
  expect((await writer.execute(statement)).rows).toEqual([])
  const claimed = await store.claim(claimRequest())
  expect(claimed.events.map(({ payload }) => payload)).toEqual(events.map(({ payload }) => payload))
})

test('an idempotency key that is taken leaves its event out, and tells which event has it', async () => {
  await empty()
  const first = newEvent({ idempotencyKey: 'once' })
  await write([first])
  const statement = insertEventsStatement([newEvent({ idempotencyKey: 'once' })], schema)
  expect((await writer.execute(statement)).rows).toEqual([])
  expect((await writer.execute(eventsByIdempotencyKeyStatement(['once', 'never'], schema))).rows).toMatchObject([
    { idempotency_key: 'once', id: first.id },
  ])
})

test('an id is handled once, even if two transactions try at once', async () => {
  await migrateInbox(database, options)
  const id = randomUUID()
  const first = await database.begin()
  expect((await first.execute(recordHandledStatement(id, 'a', schema))).rows).toEqual([{ recorded: true }])
  const second = await database.begin()
  const waiting = second.execute(recordHandledStatement(id, 'b', schema))
  await first.commit()
  expect((await waiting).rows).toEqual([{ recorded: false }])
  await second.commit()
})

test('operators list and show events by status, type, key and destination, newest first, without the payload', async () => {
  await empty()
  const events = [
    newEvent({ eventType: 'A', orderingKey: 'k1', destination: 'queue' }),
    newEvent({ eventType: 'B', orderingKey: 'k2', headers: '{"tenant":"t1"}' }),
    newEvent({ eventType: 'C', availableAt: '2100-01-01T00:00:00Z' }),
    newEvent({ eventType: 'D', availableAt: 'infinity' }),
  ]
  await write(events)
  const request = claimRequest()
  const claimed = (await store.claim(request)).events
  const [a, b] = ['A', 'B'].map((type) => claimed.find(({ eventType }) => eventType === type)!)
  await store.settle({
    token: request.token,
    events: [
      { id: a!.id, attempts: 0, outcome: { kind: 'published', destination: 'queue', messageId: 'm-7' } },
      {
        id: b!.id,
        attempts: 0,
        outcome: { kind: 'failed', charge: true, block: true, destination: 'bus', errorCode: 'TooBig', error: 'too big' },
      },
    ],
    done: null,
  })
  const list = async (filter: Partial<Parameters<typeof listEvents>[2]>) =>
    (await listEvents(operator, schema, { limit: 10, ...filter })).map(({ eventType }) => eventType)

  expect((await list({})).sort()).toEqual(['A', 'B', 'C', 'D'])
  expect(await list({ status: 'published' })).toEqual(['A'])
  expect(await list({ status: 'failed' })).toEqual(['B'])
  expect((await list({ status: 'pending' })).sort()).toEqual(['C', 'D'])
  expect(await list({ status: 'discarded' })).toEqual([])
  expect(await list({ status: 'unknown' })).toEqual([])
  expect(await list({ eventType: 'B', orderingKey: 'k2', destination: 'bus' })).toEqual(['B'])
  expect(await list({ eventType: 'B', orderingKey: 'k1' })).toEqual([])
  const ids = (await listEvents(operator, schema, { limit: 2 })).map(({ id }) => id)
  expect(ids).toEqual([...events.map(({ id }) => id)].sort().reverse().slice(0, 2))

  expect(await showEvent(operator, schema, b!.id)).toMatchObject({
    id: b!.id,
    eventType: 'B',
    orderingKey: 'k2',
    destination: 'bus',
    status: 'failed',
    detail: 'blocks its key',
    attempts: 1,
    deliveredAtMs: null,
    lastErrorCode: 'TooBig',
    lastError: 'too big',
    headers: '{"tenant":"t1"}',
    payloadBytes: 15,
    shard: b!.shard,
    seq: b!.seq,
  })
  expect(await showEvent(operator, schema, a!.id)).toMatchObject({ status: 'published', brokerMessageId: 'm-7', dueAtMs: null })
  expect(await showEvent(operator, schema, events[3]!.id)).toMatchObject({ detail: 'scheduled', retryAtMs: null })
  expect(await showEvent(operator, schema, randomUUID())).toBeNull()
  expect(await createOutboxStore(operator, { schema }).readPayload(b!.id)).toBe('{"orderId": 42}')
  const sizes = await readTableSizes(operator, schema)
  expect(sizes.map(({ table }) => table)).toEqual(['outbox', 'outbox_audit', 'outbox_delivery', 'outbox_receipt'])
  const whole = await api.db.query<{ bytes: number; indexes: number }>(
    `SELECT CAST(pg_total_relation_size(c) AS integer) AS bytes, CAST(pg_indexes_size(c) AS integer) AS indexes
       FROM unnest(CAST($1 AS regclass[])) c`,
    [sizes.map(({ table }) => `${schema}.${table}`)],
  )
  expect(sizes.map(({ tableBytes, indexBytes }) => ({ bytes: tableBytes + indexBytes, indexes: indexBytes }))).toEqual(whole)
})

test('a handler reads at its start whether it may run on this outbox', async () => {
  const expectation = { relayVersion: '0.1.0-dev', installation: 'orders', schema }
  expect(await store.meta()).toEqual({ schemaVersion, minRelayVersion: '0.1.0', installation: null })
  expect(await readSchemaCheck(store, expectation)).toEqual({ ok: true })
  const elsewhere = { ...expectation, schema: 'nowhere' }
  expect(await readSchemaCheck(createOutboxStore(relay, { schema: 'nowhere' }), elsewhere)).toEqual(checkSchema(null, elsewhere))
  const stranger = createOutboxStore(writer, { schema })
  expect(await readSchemaCheck(stranger, expectation)).toMatchObject({
    ok: false,
    reason: expect.stringContaining('outbox_relay') as string,
  })
})
