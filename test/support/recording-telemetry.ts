import type { LogFields, LogMessage, MetricName, Telemetry } from '../../src/core/ports.js'

/** Keeps what was counted and logged. */
export class RecordingTelemetry implements Telemetry {
  readonly metrics: { readonly name: MetricName; readonly value: number; readonly destination: string | undefined }[] = []
  readonly logs: { readonly message: LogMessage; readonly fields: LogFields }[] = []

  metric(name: MetricName, value: number, dimensions?: { readonly destination?: string }): void {
    this.metrics.push({ name, value, destination: dimensions?.destination })
  }

  log(message: LogMessage, fields: LogFields = {}): void {
    this.logs.push({ message, fields })
  }

  flush(): void {
    // nothing is buffered
  }

  sum(name: MetricName, destination?: string): number {
    return this.metrics
      .filter((metric) => metric.name === name && (destination === undefined || metric.destination === destination))
      .reduce((sum, { value }) => sum + value, 0)
  }

  logged(message: LogMessage): LogFields[] {
    return this.logs.filter((log) => log.message === message).map(({ fields }) => fields)
  }
}
