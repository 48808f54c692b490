import { Metric, type MetricOptions } from 'aws-cdk-lib/aws-cloudwatch'
import type { MetricName } from '../../src/core/ports.js'
import { metricNamespace } from '../../src/telemetry/metrics.js'

/** A metric of the catalogue, as an installation's handlers emit it. */
export function outboxMetric(name: MetricName, installation: string, options: MetricOptions = {}): Metric {
  return new Metric({
    namespace: metricNamespace,
    metricName: name,
    dimensionsMap: { service: installation },
    ...options,
  })
}

/** One of those that the handlers emit for each destination. */
export function destinationMetric(
  name: MetricName,
  installation: string,
  destination: string,
  options: MetricOptions = {},
): Metric {
  return outboxMetric(name, installation, { ...options, dimensionsMap: { service: installation, destination } })
}
