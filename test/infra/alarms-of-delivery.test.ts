import { CreateQueueCommand, DeleteQueueCommand } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { AlarmRig, definition } from './alarm-rig.js'

let rig: AlarmRig
beforeAll(async () => {
  rig = await AlarmRig.start()
}, 120_000)
afterAll(() => rig.stop())

const both = async () => {
  await rig.invoke('relay')
  await rig.invoke('monitor')
}

beforeEach(async () => {
  await rig.begin()
  // its normal life
  await rig.periods(3, both)
  rig.watch()
})

const sqsDown = {
  service: 'sqs',
  operation: 'SendMessageBatch',
  fault: { kind: 'error', name: 'ServiceUnavailable', status: 503 },
} as const

describe('the alarm on backlog age', () => {
  it('goes off when the relay is stopped, and clears when it runs again', async () => {
    await rig.clients.insert('Made', '{}')
    await rig.periods(9, () => rig.invoke('monitor'))
    rig.expectStates('backlogAge', ['OK', 'ALARM'])
    await rig.periods(9, both)
    rig.expectStates('backlogAge', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('goes off when a destination is down, and clears when it is up again', async () => {
    rig.stack.faults.set({ seed: 1, rules: [sqsDown] })
    await rig.clients.insert('Made', '{}', 'queue')
    await rig.periods(9, both)
    rig.expectStates('backlogAge', ['OK', 'ALARM'])
    rig.stack.faults.clear()
    await rig.periods(9, both)
    rig.expectStates('backlogAge', ['OK', 'ALARM', 'OK'])
    expect(await rig.clients.waiting('queue')).toBe(1)
  }, 120_000)

  it('goes off at the same time whatever the clock of the caller says, and not while all is well', async () => {
    const insert = (skew: string, destination: string) =>
      rig.clients.execute(
        `INSERT INTO outbox (event_type, payload, destination, created_at) VALUES ('Made', '{}', :destination, now() + CAST(:skew AS interval))`,
        { destination, skew },
      )
    for (const skew of ['9 hours', '-9 hours']) {
      await insert(skew, 'topic')
      await rig.periods(1, both)
    }
    rig.expectStates('backlogAge', ['OK'])
    rig.stack.faults.set({ seed: 1, rules: [sqsDown] })
    await insert('9 hours', 'queue')
    await rig.periods(9, both)
    rig.expectStates('backlogAge', ['OK', 'ALARM'])
  }, 120_000)

  it('measures an age that grows as time does', async () => {
    const since = performance.now()
    const elapsed = () => (performance.now() - since) / 1000
    await rig.clients.insert('Made', '{}')
    const age = async () => (await rig.stack.state()).backlog.ageSeconds
    await expect.poll(age, { timeout: 60_000 }).toBeGreaterThan(5)
    expect(elapsed()).toBeGreaterThan(5)
    expect(await age()).toBeLessThan(elapsed())
  }, 120_000)

  it('goes off when nobody measures', async () => {
    await rig.periods(9, () => rig.invoke('relay'))
    rig.expectStates('backlogAge', ['OK', 'ALARM'])
    await rig.periods(9, both)
    rig.expectStates('backlogAge', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('stays off through a failover of less than two minutes', async () => {
    await rig.periods(2, () => rig.invoke('relay'))
    await rig.periods(5, both)
    rig.expectStates('backlogAge', ['OK'])
  }, 120_000)
})

describe('the alarm on failed events', () => {
  it('goes off with the first event that can never be sent, and clears when an operator discards it', async () => {
    const fault = { kind: 'entry-error', code: 'InvalidMessageContents', senderFault: true } as const
    rig.stack.faults.set({ seed: 1, rules: [{ service: 'sqs', fault }] })
    await rig.clients.insert('Made', '{}', 'queue')
    await rig.periods(2, both)
    rig.expectStates('failedEvents', ['OK', 'ALARM'])
    rig.stack.faults.clear()
    await rig.periods(6, both)
    rig.expectStates('failedEvents', ['OK', 'ALARM'])
    await rig.database.query(`SELECT outbox_operate('discard', '{}', 100, false, 'on call', 'the test')`)
    await rig.periods(2, both)
    rig.expectStates('failedEvents', ['OK', 'ALARM', 'OK'])
  }, 120_000)
})

describe('the alarm on events without a destination', () => {
  it.each([
    ['that no route leads anywhere', null],
    ['that name one which is not configured', 'nowhere'],
  ])(
    'goes off for events %s, and clears when the configuration has one',
    async (_, destination) => {
      const queue = { type: 'sqs', queueUrl: rig.stack.description.queues.queue }
      const before = rig.configured('relay', { OUTBOX_DESTINATIONS: JSON.stringify({ queue }) })
      const after = rig.configured('relay', {
        OUTBOX_DESTINATIONS: JSON.stringify({ queue, nowhere: queue }),
        OUTBOX_DEFAULT_DESTINATION: 'queue',
      })
      const waiting = await rig.clients.waiting('queue')
      await rig.clients.execute(
        `INSERT INTO outbox (event_type, payload, destination) VALUES ('Made', '{}', NULLIF(:destination, ''))`,
        {
          destination: destination ?? '',
        },
      )
      await rig.periods(5, async () => rig.record('relay', await before.invoke()))
      rig.expectStates('unroutedEvents', ['OK', 'ALARM'])
      await rig.periods(9, async () => rig.record('relay', await after.invoke()))
      rig.expectStates('unroutedEvents', ['OK', 'ALARM', 'OK'])
      expect(await rig.clients.waiting('queue')).toBe(waiting + 1)
    },
    120_000,
  )
})

describe('the alarm on leases', () => {
  it('goes off when relays lose their shards to each other again and again, and clears when they do not', async () => {
    rig.stack.faults.set({
      seed: 1,
      rules: [{ service: 'sqs', operation: 'SendMessageBatch', fault: { kind: 'latency', ms: 2000 } }],
    })
    await rig.periods(1, () => rig.takeOver())
    await rig.periods(4, both)
    rig.expectStates('leaseLost', ['OK'])
    await rig.periods(6, () => rig.takeOver())
    rig.expectStates('leaseLost', ['OK', 'ALARM'])
    rig.stack.faults.clear()
    await rig.periods(10, both)
    rig.expectStates('leaseLost', ['OK', 'ALARM', 'OK'])
  }, 180_000)
})

describe('the alarm on missing destinations', () => {
  it('goes off when a queue of the configuration is not there, and clears when it is', async () => {
    const QueueName = 'late'
    const queueUrl = rig.stack.description.queues.queue!.replace(/queue$/, QueueName)
    const relay = rig.configured('relay', { OUTBOX_DESTINATIONS: JSON.stringify({ queue: { type: 'sqs', queueUrl } }) })
    const tick = async () => rig.record('relay', await relay.invoke())
    await rig.periods(3, tick)
    rig.expectStates('destinationsMissing', ['OK', 'ALARM'])
    const { QueueUrl } = await rig.clients.sqs.send(new CreateQueueCommand({ QueueName }))
    await rig.periods(3, tick)
    rig.expectStates('destinationsMissing', ['OK', 'ALARM', 'OK'])
    await rig.clients.sqs.send(new DeleteQueueCommand({ QueueUrl }))
  }, 120_000)
})

describe('the alarm on open circuits', () => {
  it('goes off when a destination has been down for some minutes, and clears when it takes events again', async () => {
    rig.stack.faults.set({ seed: 1, rules: [sqsDown] })
    for (let nth = 0; nth < 5; nth++) await rig.clients.insert('Made', '{}', 'queue')
    await rig.periods(9, both)
    rig.expectStates('circuitOpen', ['OK', 'ALARM'])
    rig.expectStates('destinationMisconfigured', ['OK'])
    rig.expectStates('failedEvents', ['OK'])
    const waiting = await rig.clients.waiting('queue')
    rig.stack.faults.clear()
    await rig.periods(9, both)
    rig.expectStates('circuitOpen', ['OK', 'ALARM', 'OK'])
    expect(await rig.clients.waiting('queue')).toBe(waiting + 5)
  }, 120_000)

  it('stays off through an outage of less than two minutes', async () => {
    rig.stack.faults.set({ seed: 1, rules: [sqsDown] })
    await rig.clients.insert('Made', '{}', 'queue')
    await rig.periods(2, both)
    rig.stack.faults.clear()
    await rig.periods(5, both)
    rig.expectStates('circuitOpen', ['OK'])
  }, 120_000)
})

describe('the alarm on misconfigured destinations', () => {
  it('goes off with the first request that a right is missing for, and clears when it is there', async () => {
    const message = 'User: arn:aws:sts::111122223333:assumed-role/relay is not authorized to perform: sqs:SendMessage'
    const denied = { kind: 'error', name: 'AccessDenied', status: 403, message } as const
    rig.stack.faults.set({ seed: 1, rules: [{ service: 'sqs', operation: 'SendMessageBatch', fault: denied }] })
    await rig.clients.insert('Made', '{}', 'queue')
    await rig.periods(2, both)
    rig.expectStates('destinationMisconfigured', ['OK', 'ALARM'])
    // nobody measures: that is another alarm's business, and this one is not over
    await rig.periods(3, () => rig.invoke('relay'))
    rig.expectStates('destinationMisconfigured', ['OK', 'ALARM'])
    rig.stack.faults.clear()
    await rig.periods(4, both)
    rig.expectStates('destinationMisconfigured', ['OK', 'ALARM', 'OK'])
  }, 120_000)
})

describe('the alarm on canaries', () => {
  const period = definition('canary').Period
  const round = async () => {
    await rig.invoke('canary')
    await rig.invoke('relay')
  }
  const seen = async () => {
    const before = rig.canaries
    await round()
    await expect.poll(() => rig.canaries, { timeout: 60_000 }).toBe(before + 1)
  }

  beforeEach(async () => {
    await rig.begin()
    await rig.periods(3, seen, period)
    rig.watch()
  })

  it('goes off when the bus says yes and delivers nothing, which no other alarm sees, and clears when it delivers', async () => {
    rig.stack.faults.set({ seed: 1, rules: [{ service: 'events', operation: 'PutEvents', fault: { kind: 'swallow' } }] })
    await rig.periods(9, round, period)
    rig.expectStates('canary', ['OK', 'ALARM'])
    rig.expectStates('unroutedEvents', ['OK'])
    rig.expectStates('dataApiErrors', ['OK'])
    rig.stack.faults.clear()
    await rig.periods(9, seen, period)
    rig.expectStates('canary', ['OK', 'ALARM', 'OK'])
  }, 120_000)

  it('goes off when the canary is not written any more', async () => {
    await rig.periods(9, () => rig.invoke('relay'), period)
    rig.expectStates('canary', ['OK', 'ALARM'])
  }, 120_000)

  it('goes off when canaries come back late', async () => {
    const late = async () => {
      await rig.invoke('canary')
      await rig.database.query(`UPDATE outbox SET created_at = created_at - interval '1 day' WHERE event_type = 'OutboxCanary'`)
      const before = rig.canaries
      await rig.invoke('relay')
      await expect.poll(() => rig.canaries, { timeout: 60_000 }).toBe(before + 1)
    }
    await rig.periods(3, late, period)
    rig.expectStates('canary', ['OK', 'ALARM'])
  }, 120_000)
})
