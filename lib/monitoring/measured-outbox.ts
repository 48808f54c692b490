import type { Metric, MetricOptions } from 'aws-cdk-lib/aws-cloudwatch'
import { Construct } from 'constructs'
import type { MetricName } from '../../src/core/ports.js'
import { outboxMetric } from './metrics.js'

/** An installation, as dashboards and alarms of others see it. */
export abstract class MeasuredOutbox extends Construct {
  /** The `service` of its metrics. */
  abstract readonly installation: string

  /**
   * A metric of the installation, as docs/runbook.md lists them: a sum over 5 minutes, unless the options say otherwise.
   *
   * @example
   * outbox.metric('Retried', { period: Duration.minutes(1) })
   */
  metric(name: MetricName, options: MetricOptions = {}): Metric {
    return outboxMetric(name, this.installation, { statistic: 'Sum', ...options })
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
   * How many events were confirmed by their destinations.
   *
   * @default - sum over 5 minutes
   */
  metricPublished(options: MetricOptions = {}): Metric {
    return this.metric('Published', options)
  }

  /**
   * From the moment an event was due to the confirmation of its destination, in milliseconds.
   *
   * @default - 99th percentile over 5 minutes
   */
  metricDeliveryLatency(options: MetricOptions = {}): Metric {
    return this.metric('DeliveryLatency', { statistic: 'p99', ...options })
  }
}
