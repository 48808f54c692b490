import {
  CreateEventBusCommand,
  DeleteEventBusCommand,
  DeleteRuleCommand,
  EventBridgeClient,
  ListRulesCommand,
  ListTargetsByRuleCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
} from '@aws-sdk/client-eventbridge'
import { DeleteQueueCommand } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { sdkOptions } from '../support/local-services.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

const EventBusName = 'bus'

describe('a relay whose bus does not exist', () => {
  let stack: LocalStack
  let clients: OutboxClients
  let events: EventBridgeClient

  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    clients = outboxClients(stack.description)
    events = new EventBridgeClient(sdkOptions(stack.description.endpoint))
  })
  afterAll(async () => {
    events.destroy()
    clients.destroy()
    await stack.stop()
  })

  async function removeBus(): Promise<void> {
    const { Rules = [] } = await events.send(new ListRulesCommand({ EventBusName }))
    for (const { Name: Rule } of Rules) {
      const { Targets = [] } = await events.send(new ListTargetsByRuleCommand({ EventBusName, Rule }))
      await events.send(new RemoveTargetsCommand({ EventBusName, Rule, Ids: Targets.map(({ Id }) => Id!) }))
      await events.send(new DeleteRuleCommand({ EventBusName, Name: Rule }))
    }
    await events.send(new DeleteEventBusCommand({ Name: EventBusName }))
  }

  async function makeBus(): Promise<void> {
    await events.send(new CreateEventBusCommand({ Name: EventBusName }))
    await events.send(new PutRuleCommand({ EventBusName, Name: 'all', EventPattern: '{"source":[{"prefix":""}]}' }))
    const Targets = [{ Id: 'queue', Arn: 'arn:aws:sqs:us-east-1:000000000000:bus-target' }]
    await events.send(new PutTargetsCommand({ EventBusName, Rule: 'all', Targets }))
  }

  /** One relay invocation: what it counted as missing, and what it said about that. */
  async function relay() {
    const { error, logs } = await stack.invoke('relay')
    expect(error).toBeNull()
    const lines = logs.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    const counted = lines.find((line) => 'DestinationsMissing' in line)?.['DestinationsMissing']
    return { counted: [counted].flat()[0], missing: lines.filter(({ logId }) => logId === 'destination-missing') }
  }
  const statusOf = async (eventType: string) => {
    const sql = 'SELECT status, CAST(attempts AS text), last_error FROM outbox_status WHERE event_type = :eventType'
    const { records } = await clients.execute(sql, { eventType })
    return records?.[0]?.map(({ stringValue }) => stringValue)
  }
  const calls = async (operation: string) => (await stack.state()).calls[operation] ?? 0

  it('sends it nothing, says so, and lets its events wait without charge, while others flow', async () => {
    await removeBus()
    await clients.insert('Kept', '{"n":1}')
    await clients.insert('Flows', '{"n":2}', 'queue')
    const { counted, missing } = await relay()
    expect(counted).toBe(1)
    expect(missing).toMatchObject([
      {
        level: 'ERROR',
        message: 'A destination does not exist, or is of another account',
        destination: 'bus',
        resource: 'bus',
        accountExpected: '000000000000',
      },
    ])
    expect(await calls('events.PutEvents')).toBe(0)
    expect(await clients.take('queue', 1)).toHaveLength(1)
    expect(await statusOf('Kept')).toEqual(['pending', '0', expect.stringContaining('bus does not exist (ResourceNotFound')])
  })

  it('looks again at each pass, and delivers once the bus is there', async () => {
    const looked = await calls('events.DescribeEventBus')
    expect(await relay()).toMatchObject({ counted: 1, missing: [{ destination: 'bus' }] })
    expect(await calls('events.DescribeEventBus')).toBe(looked + 1)
    await makeBus()
    await expect
      .poll(
        async () => {
          expect(await relay()).toEqual({ counted: 0, missing: [] })
          return statusOf('Kept')
        },
        { timeout: 90_000 },
      )
      .toEqual(['published', '1', undefined])
    expect((await clients.take('bus-target', 1))[0]).toContain('"data":{"n":1}')
    expect(await calls('events.DescribeEventBus')).toBe(looked + 2)
  })
})

describe('a relay that may not look at its destinations', () => {
  let stack: LocalStack
  let clients: OutboxClients

  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    clients = outboxClients(stack.description)
  })
  afterAll(async () => {
    clients.destroy()
    await stack.stop()
  })

  it('says so, counts nothing as missing, and delivers', async () => {
    const denied = { kind: 'error', name: 'AccessDeniedException', status: 400 } as const
    stack.faults.set({
      rules: [
        { service: 'events', operation: 'DescribeEventBus', fault: denied },
        { service: 'sqs', operation: 'GetQueueAttributes', fault: denied },
      ],
    })
    await clients.insert('Flows', '{"n":1}')
    await clients.insert('Flows', '{"n":2}', 'queue')
    const { error, logs } = await stack.invoke('relay')
    stack.faults.clear()
    expect(error).toBeNull()
    expect(logs.filter((line) => line.includes('"destination-unchecked"'))).toHaveLength(3)
    expect(logs.some((line) => line.includes('"DestinationsMissing":0'))).toBe(true)
    expect(await clients.take('bus-target', 1)).toHaveLength(1)
    expect(await clients.take('queue', 1)).toHaveLength(1)
  })
})

describe('a relay whose queue does not exist', () => {
  let stack: LocalStack
  let clients: OutboxClients

  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    clients = outboxClients(stack.description)
  })
  afterAll(async () => {
    clients.destroy()
    await stack.stop()
  })

  it('counts it as missing before any event goes there', async () => {
    await clients.sqs.send(new DeleteQueueCommand({ QueueUrl: stack.description.queues['queue'] }))
    const { error, logs } = await stack.invoke('relay')
    expect(error).toBeNull()
    expect(logs.some((line) => line.includes('"DestinationsMissing":1'))).toBe(true)
    expect(logs.filter((line) => line.includes('"destination-missing"'))).toEqual([
      expect.stringContaining('"destination":"queue"'),
    ])
  })
})
