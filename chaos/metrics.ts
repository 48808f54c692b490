/** Adds up what the functions count, from the lines that they log, as CloudWatch does. */
export class MetricSums {
  readonly #sums = new Map<string, number>()

  get(name: string): number {
    return this.#sums.get(name) ?? 0
  }

  /** A line of a function's log, its name before it. Anything but a metric is ignored, a line cut off by a kill too. */
  hear(line: string): void {
    const start = line.indexOf('{"_aws"')
    if (start < 0) return
    const metric = parse(line.slice(start))
    for (const { Metrics: definitions = [] } of metric?._aws?.CloudWatchMetrics ?? []) {
      for (const { Name: name, Unit: unit } of definitions) {
        const value: unknown = metric?.[name]
        if (unit !== 'Milliseconds' && typeof value === 'number') this.#sums.set(name, this.get(name) + value)
      }
    }
  }
}

interface Metric {
  readonly [name: string]: unknown
  readonly _aws?: {
    readonly CloudWatchMetrics?: readonly { readonly Metrics?: readonly { readonly Name: string; readonly Unit: string }[] }[]
  }
}

function parse(text: string): Metric | undefined {
  try {
    return JSON.parse(text) as Metric
  } catch {
    return undefined
  }
}
