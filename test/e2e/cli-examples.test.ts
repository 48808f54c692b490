import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ReadyDescription } from '../../src/cli/ready-text.js'
import { startOutbox, type RunningCommand } from '../support/outbox-command.js'

const examples = fileURLToPath(new URL('../../examples/', import.meta.url))
const writer = new URL('../../dist/esm/src/writer/index.js', import.meta.url).href

let local: RunningCommand
let description: ReadyDescription
let client: pg.Client
let folder: string

beforeAll(async () => {
  local = startOutbox(['local', '--port', '0', '--relays', '0', '--json'])
  description = JSON.parse(await local.firstLine) as ReadyDescription
  client = new pg.Client(description.databaseUrl)
  await client.connect()
  await client.query('CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL, total numeric NOT NULL)')
  folder = await mkdtemp(path.join(tmpdir(), 'outbox-example-'))
}, 60_000)

afterAll(async () => {
  await client.end()
  local.signal('SIGTERM')
  await local.ended
  await rm(folder, { recursive: true, force: true })
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

  it('place-order.mjs does, too, with the package installed under its name', async () => {
    const installed = path.join(folder, 'node_modules/aurora-outbox-relay')
    await mkdir(installed, { recursive: true })
    await writeFile(
      path.join(installed, 'package.json'),
      JSON.stringify({ name: 'aurora-outbox-relay', type: 'module', exports: { './writer': './writer.js' } }),
    )
    await writeFile(path.join(installed, 'writer.js'), `export * from ${JSON.stringify(writer)}\n`)
    await copyFile(path.join(examples, 'javascript/place-order.mjs'), path.join(folder, 'place-order.mjs'))

    const { stdout } = await promisify(execFile)(process.execPath, ['place-order.mjs', '43', '8', '5.25'], {
      cwd: folder,
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
