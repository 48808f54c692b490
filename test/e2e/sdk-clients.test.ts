import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { discardLocalProcesses, startLocalProcess, type LocalProcess } from '../support/local-process.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

let local: LocalProcess
let clients: OutboxClients

beforeAll(async () => {
  local = await startLocalProcess('--relays', '2')
  clients = outboxClients(local.description)
})
afterAll(async () => {
  clients.destroy()
  await discardLocalProcesses()
})

describe('outbox local, from outside', () => {
  it('prints one line on stdout when it is ready, with everything a client needs', () => {
    const { description } = local
    expect(local.stdout().trim().split('\n')).toHaveLength(1)
    expect(Object.keys(description)).toEqual([
      ...[
        'ready',
        'endpoint',
        'region',
        'resourceArn',
        'secretArn',
        'database',
        'databaseUrl',
        'eventBusName',
        'queues',
        'topics',
      ],
    ])
    expect(description.endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(description).toMatchObject({ ready: true, region: 'us-east-1', database: 'outbox', eventBusName: 'bus' })
    expect(Object.keys(description.queues)).toEqual(['queue', 'fifo', 'bus-target', 'topic-subscriber'])
    expect(Object.keys(description.topics)).toEqual(['topic'])
    for (const url of Object.values(description.queues)) expect(url).toMatch(`${description.endpoint}/000000000000/`)
  })

  it('delivers a row of nothing but type and payload to the target of the bus, the payload untouched', async () => {
    const payload = '{"orderId": 9007199254740993, "text": "ß 😀", "a": 1, "a": 2.10}'
    await clients.insert('OrderCreated', payload)
    const [body] = await clients.take('bus-target', 1)
    const envelope = JSON.parse(body!) as { detail: Record<string, unknown>; 'detail-type': string; source: string }
    expect(envelope).toMatchObject({ 'detail-type': 'OrderCreated', source: 'outbox-relay' })
    expect(envelope.detail).toMatchObject({ specversion: '1.0', type: 'OrderCreated', datacontenttype: 'application/json' })
    expect(body).toContain(`"data":${payload}`)
  })

  it('delivers to the queue that the row names, standard or FIFO', async () => {
    await clients.insert('OrderCreated', '{"n":1}', 'queue')
    await clients.insert('OrderCreated', '{"n":2}', 'fifo')
    expect((await clients.take('queue', 1))[0]).toContain('"data":{"n":1}')
    expect((await clients.take('fifo', 1))[0]).toContain('"data":{"n":2}')
  })

  it('lists both relays, and counts the calls of its clients', async () => {
    const read = async () =>
      (await (await fetch(`${local.description.endpoint}/_local/state`)).json()) as {
        calls: Record<string, number>
        relays: { name: string; pid: number; invocations: number }[]
        backlog: unknown
      }
    // a message may be here before the relay has recorded it
    await expect.poll(async () => (await read()).backlog).toEqual({ depth: 0, failed: 0, ageSeconds: 0 })
    const state = await read()
    expect(new Set(state.relays.map(({ name }) => name))).toEqual(new Set(['relay-1', 'relay-2']))
    expect(new Set(state.relays.map(({ pid }) => pid)).size).toBeGreaterThanOrEqual(2)
    expect(state.calls).toMatchObject({
      'rds-data.ExecuteStatement': expect.any(Number) as number,
      'sqs.ReceiveMessage': expect.any(Number) as number,
      'events.PutEvents': expect.any(Number) as number,
    })
  })

  it('ends on SIGINT with exit code 0, within seconds, and leaves no process and no file', async () => {
    const begun = performance.now()
    expect((await local.children()).length).toBeGreaterThanOrEqual(3)
    expect(await local.end('SIGINT')).toEqual({ code: 0, signal: null })
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(await local.leftovers()).toEqual([])
  })
})
