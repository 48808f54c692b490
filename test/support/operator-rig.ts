import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest'
import { runCli } from '../../src/cli/main.js'
import type { LocalStackDescription } from '../../src/local/stack.js'
import { fakeTerminal } from './fake-terminal.js'
import { outboxClients, type OutboxClients } from './outbox-clients.js'
import { startOutbox, type RunningCommand } from './outbox-command.js'

/** The id of the nth event that a test writes. */
export const id = (nth: number) => `01900000-0000-7000-8000-${String(nth).padStart(12, '0')}`

/** A local stack without relays, whose operator is `ann`: call it at top level. Each test finds the outbox empty. */
export function operatorRig() {
  let local: RunningCommand
  let description: LocalStackDescription
  let environment: Record<string, string>
  let db: pg.Client
  let clients: OutboxClients

  beforeAll(async () => {
    local = startOutbox(['local', '--port', '0', '--relays', '0', '--json'])
    description = JSON.parse(await local.firstLine) as LocalStackDescription
    environment = {
      AWS_ENDPOINT_URL: description.endpoint,
      AWS_ACCESS_KEY_ID: 'ann',
      AWS_SECRET_ACCESS_KEY: 'local',
      OUTBOX_CLUSTER_ARN: description.resourceArn,
      OUTBOX_SECRET_ARN: description.secretArn,
      OUTBOX_DATABASE: description.database,
    }
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
    db = new pg.Client(description.databaseUrl)
    await db.connect()
    clients = outboxClients(description)
  }, 60_000)

  afterAll(async () => {
    vi.unstubAllEnvs()
    clients.destroy()
    await db.end()
    local.signal('SIGTERM')
    await local.ended
  })

  const post = (path: string, method: string, body?: unknown) =>
    fetch(`${description.endpoint}${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const faults = async (...rules: readonly unknown[]) =>
    expect((await post('/_local/faults', 'PUT', { seed: 1, rules })).status).toBe(200)
  const relay = async () => expect(await (await post('/_local/invoke/relay', 'POST')).json()).toMatchObject({ error: null })

  const run = async (...args: string[]) => {
    const terminal = fakeTerminal({ environment })
    const code = await runCli(args, terminal)
    return { code, out: terminal.outText(), err: terminal.errText() }
  }
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, out, err } = await run(...args, '--json')
    expect({ err, code }).toEqual({ err: '', code: 0 })
    return JSON.parse(out) as Record<string, unknown>
  }

  const write = (nth: number, { key = null as string | null, to = 'queue', type = 'OrderPaid' } = {}) =>
    db.query('INSERT INTO outbox (id, event_type, ordering_key, destination, payload) VALUES ($1, $2, $3, $4, $5)', [
      id(nth),
      type,
      key,
      to,
      `{"nth":${nth}}`,
    ])
  const refuse = (match: string) => ({
    service: 'sqs',
    match,
    fault: { kind: 'entry-error', code: 'InvalidMessageContents', senderFault: true },
  })
  /** Writes events, of which the relay fails those whose type is given here. */
  const failed = async (...events: readonly [nth: number, options?: Parameters<typeof write>[1]][]) => {
    await faults(refuse('Refused'))
    for (const [nth, options] of events) await write(nth, { type: 'Refused', ...options })
    await relay()
    await faults()
  }
  const statuses = async () => {
    const { rows } = await db.query<{ nth: number; status: string }>(
      "SELECT CAST(right(CAST(id AS text), 12) AS integer) AS nth, status FROM outbox_status WHERE id < '01900000-0000-7000-8001-000000000000' ORDER BY id",
    )
    return Object.fromEntries(rows.map(({ nth, status }) => [nth, status]))
  }
  const audit = async () => {
    const { rows } = await db.query<Record<string, unknown>>(
      'SELECT actor, action, reason, filter, events, event_ids FROM outbox_audit ORDER BY id',
    )
    return rows
  }
  const take = async (queue: string, count: number) =>
    (await clients.take(queue, count)).map((body) => (JSON.parse(body) as { id: string }).id)

  beforeEach(async () => {
    await db.query('TRUNCATE outbox, outbox_delivery, outbox_receipt, outbox_circuit, outbox_audit')
  })
  afterEach(() => faults())

  return {
    run,
    json,
    faults,
    relay,
    write,
    failed,
    statuses,
    audit,
    take,
    waiting: (queue: string) => clients.waiting(queue),
    query: <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) => db.query<Row>(sql, [...values]),
    description: () => description,
    environment: () => environment,
  }
}
