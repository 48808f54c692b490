import type { Duration } from 'aws-cdk-lib'
import {
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type Alarm,
  type IMetric,
  MathExpression,
  Stats,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'
import type { MetricName } from '../../src/core/ports.js'
import { runbook } from './alarm-catalogue.js'
import type { OutboxAlarms } from './alarms.js'
import { destinationMetric, outboxMetric } from './metrics.js'

export interface OutboxDashboardProps {
  readonly installation: string
  /** Of relay and monitor: the period of what they measure. */
  readonly tick: Duration
  /** By what they are called on it. */
  readonly functions: Readonly<Record<string, IFunction>>
  readonly alarms: OutboxAlarms
  /** Where the runbook can be read. Default: its path in the package. */
  readonly runbookUrl?: string | undefined
}

/** Of 24 columns. */
const third = 8

/** One page with everything that the handlers emit, and with what of AWS/Lambda costs money or goes wrong. */
export class OutboxDashboard {
  readonly dashboard: Dashboard
  readonly #props: OutboxDashboardProps
  readonly #published = graph('Published per second')
  readonly #latency = graph('Delivery latency, p50 and p99 (ms)')
  readonly #retries = graph('Retries')
  readonly #faults = graph('Requests that failed whole, open circuits')
  readonly #failed = graph('Failed events, and those without a destination')
  readonly #oddities = graph('Answers without an entry, headers dropped')
  readonly #requests = graph('Publish requests')
  readonly #canary = graph('Canary age (s)')
  readonly #alarms: Alarm[]
  #destinations = 0
  #canaries = 0

  constructor(scope: Construct, id: string, props: OutboxDashboardProps) {
    this.#props = props
    this.#alarms = Object.values(props.alarms)
    const { installation, functions } = props
    const one = (name: MetricName, label: string, statistic: string) => this.#outbox(name, label, statistic)
    const lambda = (title: string, name: string, statistic: string) =>
      graph(
        title,
        Object.entries(functions).map(([label, each]) => each.metric(name, { statistic, period: props.tick, label })),
      )
    this.#failed.addLeftMetric(one('FailedEvents', 'failed, waiting for an operator', Stats.MAXIMUM))
    this.#faults.addRightMetric(one('OpenCircuits', 'circuits open', Stats.MAXIMUM))
    this.#faults.addRightMetric(one('MisconfiguredDestinations', 'of them misconfigured', Stats.MAXIMUM))
    this.#failed.addRightMetric(one('Unrouted', 'without a destination, tries', Stats.SUM))

    this.dashboard = new Dashboard(scope, id)
    const rows = [
      [
        new TextWidget({
          markdown: `# Outbox ${installation}\nWhat each alarm means, and the first command: ${props.runbookUrl ?? `${runbook} of aurora-outbox-relay`}.`,
          width: third,
          height: 4,
        }),
        new AlarmStatusWidget({ title: 'Alarms', alarms: this.#alarms, width: 2 * third, height: 4 }),
      ],
      [
        graph('Backlog age (s)', [one('BacklogAge', 'oldest due event', Stats.MAXIMUM)]),
        graph('Backlog depth', [
          one('BacklogDepth', 'due', Stats.MAXIMUM),
          one('BackingOffEvents', 'backing off', Stats.MAXIMUM),
          one('HeldEvents', 'held', Stats.MAXIMUM),
          one('ScheduledEvents', 'scheduled', Stats.MAXIMUM),
        ]),
        this.#failed,
      ],
      [this.#published, this.#latency, this.#retries],
      [this.#faults, this.#oddities, this.#requests],
      [
        graph('Relay', [
          one('PassCompleted', 'passes completed', Stats.SUM),
          one('LeaseLost', 'shards lost', Stats.SUM),
          one('CrashedRelays', 'ended with one event in hand', Stats.SUM),
          one('OversizeClaims', 'claims too large', Stats.SUM),
          one('DestinationsMissing', 'destinations missing', Stats.MAXIMUM),
        ]),
        graph('Order', [
          one('BlockedKeys', 'ordering keys blocked', Stats.MAXIMUM),
          one('LeasedShards', 'shards leased, of 16', Stats.MAXIMUM),
        ]),
        graph('Cleanup', [
          one('EventsDeleted', 'deleted', Stats.SUM),
          one('FailedEventsExpired', 'failed ones expired', Stats.SUM),
          one('CleanupBehind', 'behind', Stats.MAXIMUM),
        ]),
      ],
      [
        lambda('Duration, p99 (ms)', 'Duration', Stats.p(99)),
        lambda('Errors and timeouts', 'Errors', Stats.SUM),
        lambda('Throttles', 'Throttles', Stats.SUM),
      ],
      [
        lambda('Cost: invocations', 'Invocations', Stats.SUM),
        lambda('Cost: run time (ms)', 'Duration', Stats.SUM),
        lambda('Ticks dropped', 'AsyncEventsDropped', Stats.SUM),
      ],
      [
        graph('Cost: Data API calls', [one('DataApiCalls', 'calls', Stats.SUM), one('DataApiErrors', 'failed', Stats.SUM)]),
        lambda('Concurrent executions', 'ConcurrentExecutions', Stats.MAXIMUM),
      ],
    ]
    for (const row of rows) this.dashboard.addWidgets(...row)
  }

  /** Shows a destination. The order of calls is the order of colours. */
  addDestination(name: string): void {
    const { installation, tick } = this.#props
    const of = (metric: MetricName, label: string, statistic: string) =>
      destinationMetric(metric, installation, name, { statistic, period: tick, label })
    const published = of('Published', name, Stats.SUM)
    // what stands for a metric in an expression begins with a lower-case letter; a name may have other characters too
    const symbol = `published${++this.#destinations}`
    this.#published.addLeftMetric(
      new MathExpression({
        expression: `${symbol} / PERIOD(${symbol})`,
        usingMetrics: { [symbol]: published },
        label: name,
        period: tick,
      }),
    )
    this.#latency.addLeftMetric(of('DeliveryLatency', `${name} p50`, Stats.p(50)))
    this.#latency.addLeftMetric(of('DeliveryLatency', `${name} p99`, Stats.p(99)))
    this.#retries.addLeftMetric(of('Retried', name, Stats.SUM))
    this.#faults.addLeftMetric(of('DestinationFaults', name, Stats.SUM))
    this.#failed.addRightMetric(of('Failed', `${name}, failing`, Stats.SUM))
    this.#oddities.addLeftMetric(of('UnknownEntries', `${name} unknown`, Stats.SUM))
    this.#oddities.addRightMetric(of('DroppedHeaders', `${name} headers dropped`, Stats.SUM))
    this.#requests.addLeftMetric(of('PublishRequests', name, Stats.SUM))
  }

  /** Shows how long test events through a destination are on their way. */
  addCanary(destination: string, alarm: Alarm): void {
    this.#alarms.push(alarm)
    const { installation, tick } = this.#props
    // a graph of nothing is refused
    if (this.#canaries++ === 0) this.dashboard.addWidgets(this.#canary)
    this.#canary.addLeftMetric(
      destinationMetric('CanaryAge', installation, destination, { statistic: Stats.MAXIMUM, period: tick, label: destination }),
    )
  }

  #outbox(name: MetricName, label: string, statistic: string): IMetric {
    return outboxMetric(name, this.#props.installation, { label, statistic, period: this.#props.tick })
  }
}

function graph(title: string, left: readonly IMetric[] = []): GraphWidget {
  return new GraphWidget({ title, left: [...left], width: third, leftYAxis: { min: 0 }, rightYAxis: { min: 0 } })
}
