import type { Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch'
import { Construct } from 'constructs'
import type { MetricName } from '../../src/core/ports.js'
import { ConfigurationError } from '../../src/core/errors.js'
import { metricCatalogue } from '../../src/telemetry/metrics.js'
import { destinationMetric, outboxMetric } from './metrics.js'

export interface OutboxMetricOptions extends MetricOptions {
  /**
   * The destination's name, for a metric that is split by destination: CloudWatch adds nothing up by itself.
   *
   * @default - none
   */
  readonly destination?: string
}

/** An installation, as dashboards and alarms of others see it. */
export abstract class MeasuredOutbox extends Construct {
  /** The `service` of its metrics. */
  abstract readonly installation: string

  /**
   * A metric of the installation, as docs/runbook.md lists them: a sum over 5 minutes, unless the options say otherwise.
   *
   * @throws ConfigurationError if it is split by destination and none is named, or the other way round.
   * @example
   * outbox.metric('Retried', { destination: 'bus', period: Duration.minutes(1) })
   */
  metric(name: MetricName, options: OutboxMetricOptions = {}): Metric {
    const { destination, ...others } = options
    const all = { statistic: 'Sum', ...others }
    const { byDestination } = metricCatalogue[name]
    if (byDestination && destination === undefined)
      throw new ConfigurationError('destination', `destination is missing: ${name} is split by destination. Name one`)
    if (!byDestination && destination !== undefined)
      throw new ConfigurationError(
        'destination',
        `destination is "${destination}", but ${name} is not split by destination. Leave it out`,
      )
    return destination === undefined
      ? outboxMetric(name, this.installation, all)
      : destinationMetric(name, this.installation, destination, all)
  }

  /**
   * Age of the oldest event that is due and neither delivered nor failed, in seconds; 0 when there is none.
   *
   * @default - maximum over 5 minutes
   */
  metricBacklogAge(options: MetricOptions = {}): Metric {
    return this.metric('BacklogAge', { statistic: 'Maximum', ...options })
  }

  /**
   * How many events are due and neither delivered nor failed.
   *
   * @default - maximum over 5 minutes
   */
  metricBacklogDepth(options: MetricOptions = {}): Metric {
    return this.metric('BacklogDepth', { statistic: 'Maximum', ...options })
  }

  /**
   * How many events failed for good and wait for an operator.
   *
   * @default - maximum over 5 minutes
   */
  metricFailedEvents(options: MetricOptions = {}): Metric {
    return this.metric('FailedEvents', { statistic: 'Maximum', ...options })
  }

  /**
   * How many events a destination confirmed.
   *
   * @default - sum over 5 minutes
   */
  metricPublished(destination: string, options: MetricOptions = {}): Metric {
    return this.metric('Published', { destination, ...options })
  }

  /**
   * From the moment an event was due to its destination's confirmation, in milliseconds.
   *
   * @default - 99th percentile over 5 minutes
   */
  metricDeliveryLatency(destination: string, options: MetricOptions = {}): Metric {
    return this.metric('DeliveryLatency', { destination, statistic: 'p99', ...options })
  }
}
