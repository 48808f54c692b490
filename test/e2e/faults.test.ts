import { CommitTransactionCommand, BeginTransactionCommand, ExecuteStatementCommand } from '@aws-sdk/client-rds-data'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { FaultSetting } from '../../src/local/faults/rules.js'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

let stack: LocalStack
let clients: OutboxClients

beforeAll(async () => {
  // no schedule: a relay pass runs when a test invokes it, so what faults do to it is seen one pass at a time
  stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
  clients = outboxClients(stack.description)
})
afterEach(() => stack.faults.clear())
afterAll(async () => {
  clients.destroy()
  await stack.stop()
})

type Rule = FaultSetting['rules'][number]

/** As from outside: through the control API. */
async function putFaults(...rules: readonly Rule[]): Promise<void> {
  const answer = await fetch(`${stack.description.endpoint}/_local/faults`, {
    method: 'PUT',
    body: JSON.stringify({ seed: 1, rules }),
  })
  expect(answer.status).toBe(200)
}

async function hits(): Promise<readonly number[]> {
  const answer = await fetch(`${stack.description.endpoint}/_local/faults`)
  return ((await answer.json()) as { rules: { hits: number }[] }).rules.map((rule) => rule.hits)
}

const count = async (table: string) => {
  const answer = await clients.execute(`SELECT count(*) AS n FROM ${table}`)
  return answer.records![0]![0]!.longValue
}
const rds = (fault: Rule['fault'], more: Partial<Rule> = {}) => putFaults({ service: 'rds-data', fault, ...more })

describe('a fault of the Data API', () => {
  const insert = 'INSERT INTO probe (n) VALUES (1)'
  beforeAll(async () => {
    await clients.execute('CREATE TABLE probe (n integer)')
  })
  afterEach(async () => {
    stack.faults.clear()
    await clients.execute('DELETE FROM probe')
  })

  it('error: that name and status, without an effect', async () => {
    await rds({ kind: 'error', name: 'DatabaseErrorException', status: 400, message: 'ERROR: no; SQLState: 40001' }, { times: 1 })
    await expect(clients.execute(insert)).rejects.toMatchObject({
      name: 'DatabaseErrorException',
      message: 'ERROR: no; SQLState: 40001',
    })
    expect(await count('probe')).toBe(0)
  })

  it('throttle: ThrottlingException, without an effect', async () => {
    await rds({ kind: 'throttle' }, { times: 1 })
    await expect(clients.execute(insert)).rejects.toMatchObject({ name: 'ThrottlingException' })
    expect(await count('probe')).toBe(0)
  })

  it('latency: the answer takes so long', async () => {
    await rds({ kind: 'latency', ms: 200 }, { match: 'INSERT INTO probe' })
    const begun = performance.now()
    await clients.execute(insert)
    expect(performance.now() - begun).toBeGreaterThan(190)
    expect(await count('probe')).toBe(1)
  })

  it('drop-reply: the statement ran, its answer is lost', async () => {
    await rds({ kind: 'drop-reply' }, { match: 'INSERT INTO probe' })
    await expect(clients.execute(insert)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await count('probe')).toBe(1)
  })

  it('drop-reply of a commit: it is committed, and nobody was told', async () => {
    const { resourceArn, secretArn, database } = stack.description
    const place = { resourceArn, secretArn }
    const { transactionId } = await clients.rds.send(new BeginTransactionCommand({ ...place, database }))
    await clients.rds.send(new ExecuteStatementCommand({ ...place, transactionId, sql: insert }))
    await rds({ kind: 'drop-reply' }, { operation: 'CommitTransaction' })
    await expect(clients.rds.send(new CommitTransactionCommand({ ...place, transactionId }))).rejects.toMatchObject({
      code: 'ECONNRESET',
    })
    expect(await count('probe')).toBe(1)
  })

  it('reset: the connection is cut, and nothing ran', async () => {
    await rds({ kind: 'reset' }, { match: 'INSERT INTO probe' })
    await expect(clients.execute(insert)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(await count('probe')).toBe(0)
  })

  it('resuming: DatabaseResumingException until the seconds are over, then all is well', async () => {
    await rds({ kind: 'resuming', seconds: 0.5 })
    const begun = performance.now()
    await expect(clients.execute(insert)).rejects.toMatchObject({ name: 'DatabaseResumingException' })
    await expect
      .poll(
        () =>
          clients.execute(insert).then(
            () => 'awake',
            (error: unknown) => (error as Error).name,
          ),
        { timeout: 5000 },
      )
      .toBe('awake')
    expect(performance.now() - begun).toBeGreaterThan(490)
    expect(await count('probe')).toBe(1)
  })
})

describe('a relay under a fault', () => {
  /** One pass, then what the queue holds and what still waits. */
  const pass = async () => {
    const { error } = await stack.invoke('relay')
    expect(error).toBeNull()
    return (await stack.state()).backlog
  }
  const destinations = [
    ['queue', 'sqs', 'queue'],
    ['fifo', 'sqs', 'fifo'],
    ['bus', 'events', 'bus-target'],
    ['topic', 'sns', 'topic-subscriber'],
  ] as const
  const faults: readonly Rule['fault'][] = [
    { kind: 'error', name: 'InternalFailure', status: 500 },
    { kind: 'throttle' },
    { kind: 'reset' },
    { kind: 'drop-reply' },
    { kind: 'latency', ms: 300 },
    { kind: 'entry-error', code: 'InternalError' },
    { kind: 'entry-missing' },
  ]
  const cases = destinations.flatMap((destination) =>
    faults.map((fault) => [destination[0], fault.kind, destination[1], destination[2], fault] as const),
  )

  it.each(cases)('of destination %s loses nothing: %s', async (destination, kind, service, queue, fault) => {
    await putFaults({ service, destination, match: 'unlucky', times: 1, fault })
    const payloads = ['{"n":1}', '{"n":"unlucky"}', '{"n":3}']
    for (const payload of payloads) await clients.insert('FaultTried', payload, destination)
    await pass()
    expect(await hits()).toEqual([1])
    // what is left waits for its time; retries of a destination's fault come within seconds
    await expect.poll(async () => (await pass()).depth, { timeout: 30_000, interval: 250 }).toBe(0)
    // where the answer was lost after the effect, all of that request came twice; a FIFO queue drops the second
    const taken = await clients.take(queue, payloads.length)
    for (const payload of payloads)
      expect(
        taken.some((body) => body.includes(`"data":${payload}`)),
        `${kind} ${payload}`,
      ).toBe(true)
    await drain(queue)
  })

  it('cannot see that a destination swallows: the event counts as published, and nobody gets it', async () => {
    await putFaults({ service: 'sqs', destination: 'queue', match: 'unlucky', fault: { kind: 'swallow' } })
    await clients.insert('FaultTried', '{"n":"unlucky"}', 'queue')
    await clients.insert('FaultTried', '{"n":2}', 'queue')
    expect((await pass()).depth).toBe(0)
    expect(await clients.take('queue', 1)).toEqual([expect.stringContaining('"data":{"n":2}')])
    expect(await drain('queue')).toBe(0)
  })

  it('of the database delivers as soon as it is over', async () => {
    await clients.insert('FaultTried', '{"n":1}', 'queue')
    await putFaults({ service: 'rds-data', fault: { kind: 'resuming', seconds: 1 } })
    await pass()
    stack.faults.clear()
    expect((await stack.state()).backlog.depth).toBe(0)
    await clients.take('queue', 1)
  })

  /** Empties a queue, and says how much was in it. */
  async function drain(queue: string): Promise<number> {
    const before = await clients.waiting(queue)
    if (before > 0) await clients.take(queue, before)
    return before
  }
})
