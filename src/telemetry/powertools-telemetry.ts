import { Logger } from '@aws-lambda-powertools/logger'
import { Metrics } from '@aws-lambda-powertools/metrics'
import type { LogFields, LogMessage, MetricName, Telemetry } from '../core/ports.js'
import { logCatalogue } from './logs.js'
import { metricCatalogue, metricNamespace, type MetricUnit } from './metrics.js'

const units = { Count: 'Count', Seconds: 'Seconds', Milliseconds: 'Milliseconds' } as const satisfies Record<MetricUnit, string>

/**
 * Telemetry as JSON log lines and EMF metrics on stdout: no permission but the log group's is needed.
 *
 * Counts are added up until `flush`, so that a pass costs one line per destination and flush, whatever it moves;
 * latencies keep their single values, which CloudWatch needs for percentiles.
 */
export function createPowertoolsTelemetry(options: { readonly installation: string; readonly handler: string }): Telemetry {
  const logger = new Logger({ serviceName: options.installation, persistentKeys: { handler: options.handler } })
  const metrics = new Metrics({ namespace: metricNamespace, serviceName: options.installation })
  const counts = new Map<string, { name: MetricName; destination: string | undefined; value: number }>()
  const perDestination = new Map<string, Metrics>()

  const metricsFor = (destination: string | undefined): Metrics => {
    if (destination === undefined) return metrics
    let own = perDestination.get(destination)
    if (own === undefined) {
      own = new Metrics({ namespace: metricNamespace, serviceName: options.installation, defaultDimensions: { destination } })
      perDestination.set(destination, own)
    }
    return own
  }

  return {
    metric(name, value, dimensions) {
      const destination = metricCatalogue[name].byDestination ? dimensions?.destination : undefined
      const unit = units[metricCatalogue[name].unit]
      if (unit !== 'Count') {
        metricsFor(destination).addMetric(name, unit, value)
        return
      }
      const key = `${name} ${destination ?? ''}`
      const counted = counts.get(key)
      if (counted === undefined) counts.set(key, { name, destination, value })
      else counted.value += value
    },

    log(message: LogMessage, fields: LogFields = {}) {
      const { level, text } = logCatalogue[message]
      const line = { message: text, logId: message, ...fields }
      if (level === 'INFO') logger.info(line)
      else if (level === 'WARN') logger.warn(line)
      else logger.error(line)
    },

    flush() {
      for (const { name, destination, value } of counts.values()) metricsFor(destination).addMetric(name, 'Count', value)
      counts.clear()
      for (const each of [metrics, ...perDestination.values()]) {
        if (each.hasStoredMetrics()) each.publishStoredMetrics()
      }
    },
  }
}
