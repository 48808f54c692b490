/**
 * CloudWatch's rules for the state of a metric alarm, as its user guide gives them ("Alarm evaluation", "Configuring how
 * CloudWatch alarms treat missing data"), for alarms on one metric without metric math. Not checked against the service; the
 * tables of the guide are a test of this file.
 */
export interface AlarmDefinition {
  readonly Namespace: string
  readonly MetricName: string
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[]
  readonly Statistic: 'Sum' | 'Maximum' | 'Minimum' | 'Average' | 'SampleCount'
  readonly Threshold: number
  /** Seconds. */
  readonly Period: number
  readonly EvaluationPeriods: number
  readonly DatapointsToAlarm: number
  readonly ComparisonOperator: keyof typeof comparisons
  readonly TreatMissingData: 'missing' | 'ignore' | 'breaching' | 'notBreaching'
}

export type AlarmState = 'OK' | 'ALARM' | 'INSUFFICIENT_DATA'

/** One value of a metric, as a handler emitted it. */
export interface MetricValue {
  readonly atSeconds: number
  readonly value: number
}

const comparisons = {
  GreaterThanThreshold: (value: number, threshold: number) => value > threshold,
  GreaterThanOrEqualToThreshold: (value: number, threshold: number) => value >= threshold,
  LessThanThreshold: (value: number, threshold: number) => value < threshold,
  LessThanOrEqualToThreshold: (value: number, threshold: number) => value <= threshold,
} as const

const statistics = {
  Sum: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0),
  Maximum: (values: readonly number[]) => Math.max(...values),
  Minimum: (values: readonly number[]) => Math.min(...values),
  Average: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length,
  SampleCount: (values: readonly number[]) => values.length,
} as const

/** A period without any value has no datapoint: `null`. */
export type Datapoint = number | null

/** The datapoints of the last `count` whole periods before `nowSeconds`, oldest first. */
export function datapoints(
  { Statistic, Period }: Pick<AlarmDefinition, 'Statistic' | 'Period'>,
  values: readonly MetricValue[],
  nowSeconds: number,
  count: number,
): readonly Datapoint[] {
  const end = Math.floor(nowSeconds / Period)
  return Array.from({ length: count }, (_, index) => {
    const period = end - count + index
    const inside = values.filter(({ atSeconds }) => Math.floor(atSeconds / Period) === period).map(({ value }) => value)
    return inside.length === 0 ? null : statistics[Statistic](inside)
  })
}

export type Evaluation = Pick<
  AlarmDefinition,
  'Threshold' | 'EvaluationPeriods' | 'DatapointsToAlarm' | 'ComparisonOperator' | 'TreatMissingData'
>

/**
 * The state after one evaluation.
 *
 * @param range - the datapoints of the evaluation range, oldest first. CloudWatch looks at more periods than it needs; how many
 * more it does not say (the guide's example: 5 for 3).
 */
export function evaluate(alarm: Evaluation, range: readonly Datapoint[], before: AlarmState): AlarmState {
  const { Threshold, EvaluationPeriods, DatapointsToAlarm, ComparisonOperator, TreatMissingData } = alarm
  const breaches = (value: number): boolean => comparisons[ComparisonOperator](value, Threshold)
  const state = (breaching: number): AlarmState => (breaching >= DatapointsToAlarm ? 'ALARM' : 'OK')

  const real = range.filter((point) => point !== null)
  const breaching = real.slice(-EvaluationPeriods).filter(breaches).length
  const toFill = EvaluationPeriods - real.length
  // enough real ones, wherever in the range: what is missing does not count
  if (toFill <= 0) return state(breaching)

  switch (TreatMissingData) {
    case 'breaching':
      return state(breaching + toFill)
    case 'notBreaching':
      return state(breaching)
    case 'missing':
    case 'ignore': {
      if (real.length === 0) return TreatMissingData === 'missing' ? 'INSUFFICIENT_DATA' : before
      if (real.some((value) => !breaches(value))) return state(breaching)
      // all that is there breaches: ALARM once the oldest of it is old enough, "premature" for want of datapoints
      const age = range.length - range.findIndex((point) => point !== null)
      if (TreatMissingData === 'ignore') return before
      return age >= DatapointsToAlarm ? 'ALARM' : before
    }
  }
}

/**
 * Watches an alarm over a stretch of time, evaluated at the end of each period: the states it was in, in order, without repeats.
 */
export function watch(
  alarm: AlarmDefinition,
  values: readonly MetricValue[],
  { from, to, extra }: { readonly from: number; readonly to: number; readonly extra: number },
): readonly AlarmState[] {
  const states: AlarmState[] = ['INSUFFICIENT_DATA']
  for (let now = from; now <= to; now += alarm.Period) {
    const range = datapoints(alarm, values, now, alarm.EvaluationPeriods + extra)
    const next = evaluate(alarm, range, states.at(-1) ?? 'INSUFFICIENT_DATA')
    if (next !== states.at(-1)) states.push(next)
  }
  return states
}
