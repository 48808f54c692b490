/** Nearest rank: the smallest value that at least this share of all does not exceed. NaN if there is none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

export interface Spread {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Rounded to so many decimals. */
export function spread(values: readonly number[], decimals = 0): Spread {
  return {
    p50: round(percentile(values, 0.5), decimals),
    p99: round(percentile(values, 0.99), decimals),
    max: round(percentile(values, 1), decimals),
  }
}

export function round(value: number, decimals = 0): number {
  return Number(value.toFixed(decimals))
}
