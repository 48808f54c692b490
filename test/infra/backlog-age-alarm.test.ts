import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'
import { exampleTemplate, resourcesOf } from './synthesis.js'

interface AlarmProperties {
  readonly Namespace: string
  readonly MetricName: string
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[]
  readonly Threshold: number
  readonly Period: number
  readonly EvaluationPeriods: number
  readonly DatapointsToAlarm: number
  readonly ComparisonOperator: string
}

describe('the alarm on backlog age, fed by the real monitor through a real outage', () => {
  let stack: LocalStack
  let clients: OutboxClients
  const alarm = Object.values(resourcesOf(exampleTemplate(), 'AWS::CloudWatch::Alarm'))
    .map(({ Properties }) => Properties as unknown as AlarmProperties)
    .find(({ MetricName }) => MetricName === 'BacklogAge')!

  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 1, log: () => undefined })
    clients = outboxClients(stack.description)
  }, 120_000)
  afterAll(async () => {
    clients.destroy()
    await stack.stop()
  })

  /** The value that CloudWatch would take from the monitor's EMF for this alarm. */
  async function datapoint(): Promise<number> {
    const { logs, error } = await stack.invoke('monitor')
    expect(error).toBeNull()
    const emf = logs
      .filter((line) => line.startsWith('{"_aws"'))
      .map(
        (line) =>
          JSON.parse(line) as Record<string, unknown> & {
            _aws: { CloudWatchMetrics: { Namespace: string; Dimensions: string[][] }[] }
          },
      )
      .find(
        ({ _aws }) =>
          _aws.CloudWatchMetrics[0]?.Namespace === alarm.Namespace &&
          JSON.stringify(_aws.CloudWatchMetrics[0].Dimensions) === JSON.stringify([alarm.Dimensions.map(({ Name }) => Name)]),
      )
    expect(emf?.[alarm.Dimensions[0]!.Name]).toBe('local')
    return emf?.[alarm.MetricName] as number
  }

  it('sees the age rise second by second, passes the threshold with three datapoints a minute apart, and falls to 0 after', async () => {
    expect(await datapoint()).toBe(0)
    stack.faults.set({
      seed: 1,
      rules: [
        { service: 'sqs', operation: 'SendMessageBatch', fault: { kind: 'error', name: 'ServiceUnavailable', status: 503 } },
        { service: 'events', operation: 'PutEvents', fault: { kind: 'error', name: 'InternalException', status: 500 } },
      ],
    } as never)
    const since = performance.now()
    const elapsed = () => (performance.now() - since) / 1000
    // a client whose clock is hours fast moves nothing
    await clients.execute(
      `INSERT INTO outbox (event_type, payload, destination, created_at) VALUES ('Made', '{}', NULL, now() + interval '9 hours'), ('Made', '{}', 'queue', now())`,
    )

    // rule 16: second by second, whatever the events go through meanwhile
    let last = 0
    for (let second = 1; second <= 15; second++) {
      await sleepUntil(second)
      const { backlog } = await stack.state()
      expect(backlog.ageSeconds).toBeGreaterThan(last)
      expect(Math.abs(backlog.ageSeconds - elapsed())).toBeLessThan(3)
      expect(backlog.depth).toBe(2)
      last = backlog.ageSeconds
    }

    const datapoints: number[] = []
    for (let period = 1; datapoints.length < alarm.DatapointsToAlarm; period++) {
      await sleepUntil(alarm.Threshold + 2 + (period - 1) * alarm.Period)
      datapoints.push(await datapoint())
    }
    expect(alarm.ComparisonOperator).toBe('GreaterThanThreshold')
    expect(datapoints.filter((value) => value > alarm.Threshold)).toHaveLength(alarm.DatapointsToAlarm)
    expect(datapoints).toEqual([...datapoints].sort((a, b) => a - b))

    stack.faults.clear()
    await expect.poll(async () => (await stack.state()).backlog.depth, { timeout: 150_000, interval: 500 }).toBe(0)
    expect(await datapoint()).toBe(0)

    async function sleepUntil(second: number): Promise<void> {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, second - elapsed()) * 1000))
    }
  }, 400_000)
})
