import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LocalStackDescription } from '../../src/local/stack.js'
import { startOutbox, type RunningCommand } from '../support/outbox-command.js'

const examples = fileURLToPath(new URL('../../examples/', import.meta.url))

let local: RunningCommand
let description: LocalStackDescription
let client: pg.Client

beforeAll(async () => {
  local = startOutbox(['local', '--port', '0', '--relays', '0', '--json'])
  description = JSON.parse(await local.firstLine) as LocalStackDescription
  client = new pg.Client(description.databaseUrl)
  await client.connect()
  await client.query('CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL, total numeric NOT NULL)')
}, 60_000)

afterAll(async () => {
  await client.end()
  local.signal('SIGTERM')
  await local.ended
})

const eventsOf = async (aggregateId: string) => {
  const { rows } = await client.query<Record<string, string>>(
    'SELECT event_type, ordering_key, payload FROM outbox WHERE aggregate_id = $1',
    [aggregateId],
  )
  return rows
}

describe('the examples', () => {
  it('place-order.sql commits an order with its events', async () => {
    await client.query(await readFile(path.join(examples, 'sql/place-order.sql'), 'utf8'))
    expect((await client.query('SELECT total FROM orders WHERE id = 42')).rows).toEqual([{ total: '19.90' }])
    expect(await eventsOf('order-42')).toEqual([
      { event_type: 'OrderPriced', ordering_key: 'customer-7', payload: '{"orderId": 42, "total": 19.90}' },
    ])
    const minimal = await client.query('SELECT status, detail FROM outbox_status WHERE event_type = $1', ['OrderCreated'])
    expect(minimal.rows).toEqual([{ status: 'pending', detail: 'ready' }])
  })

  it('place-order.mjs does, too, importing the package by its name', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['javascript/place-order.mjs', '43', '8', '5.25'], {
      cwd: examples,
      env: {
        PATH: process.env['PATH'],
        AWS_ENDPOINT_URL: description.endpoint,
        AWS_REGION: description.region,
        AWS_ACCESS_KEY_ID: 'local',
        AWS_SECRET_ACCESS_KEY: 'local',
        OUTBOX_CLUSTER_ARN: description.resourceArn,
        OUTBOX_SECRET_ARN: description.secretArn,
        OUTBOX_DATABASE: description.database,
      },
    })
    expect(stdout).toMatch(/^[0-9a-f-]{36}\n$/)
    expect((await client.query('SELECT total FROM orders WHERE id = 43')).rows).toEqual([{ total: '5.25' }])
    expect(await eventsOf('order-43')).toEqual([
      { event_type: 'OrderCreated', ordering_key: 'customer-8', payload: '{"orderId":43,"total":"5.25"}' },
    ])
  })
})
