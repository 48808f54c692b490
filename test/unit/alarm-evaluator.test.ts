import { describe, expect, it } from 'vitest'
import { datapoints, evaluate, watch, type AlarmState, type Datapoint, type Evaluation } from '../support/alarm-evaluator.js'

const treatments = ['missing', 'ignore', 'breaching', 'notBreaching'] as const

/** As in the user guide: the newest at the right, 0 within the threshold, X breaching, - missing. */
const range = (drawn: string): readonly Datapoint[] =>
  drawn.split(' ').map((point) => (point === '-' ? null : point === 'X' ? 2 : 0))

const alarm = (DatapointsToAlarm: number, TreatMissingData: Evaluation['TreatMissingData']): Evaluation => ({
  Threshold: 1,
  ComparisonOperator: 'GreaterThanThreshold',
  EvaluationPeriods: 3,
  DatapointsToAlarm,
  TreatMissingData,
})

const states = (ofThree: number, drawn: string, before: AlarmState): readonly AlarmState[] =>
  treatments.map((treatment) => evaluate(alarm(ofThree, treatment), range(drawn), before))

describe('the state of an alarm by the tables of the CloudWatch user guide', () => {
  // 'INSUFFICIENT_DATA' in the second column: the state is retained, and that was the one before
  it.each<[number, string, readonly [AlarmState, AlarmState, AlarmState, AlarmState]]>([
    [3, '0 - X - X', ['OK', 'OK', 'OK', 'OK']],
    [3, '0 - - - -', ['OK', 'OK', 'OK', 'OK']],
    [3, '- - - - -', ['INSUFFICIENT_DATA', 'INSUFFICIENT_DATA', 'ALARM', 'OK']],
    [3, '0 X X - X', ['ALARM', 'ALARM', 'ALARM', 'ALARM']],
    [3, '- - X - -', ['ALARM', 'INSUFFICIENT_DATA', 'ALARM', 'OK']],
    [2, '0 - X - X', ['ALARM', 'ALARM', 'ALARM', 'ALARM']],
    [2, '0 0 X 0 X', ['ALARM', 'ALARM', 'ALARM', 'ALARM']],
    [2, '0 - X - -', ['OK', 'OK', 'ALARM', 'OK']],
    [2, '- - - - 0', ['OK', 'OK', 'ALARM', 'OK']],
    [2, '- - - X -', ['ALARM', 'INSUFFICIENT_DATA', 'ALARM', 'OK']],
  ])('with %i of 3 datapoints to alarm, %s', (ofThree, drawn, expected) => {
    expect(states(ofThree, drawn, 'INSUFFICIENT_DATA')).toEqual(expected)
  })

  it.each(['- - - - X', '- - - X -'])('does not go off too early on %s when 3 datapoints are needed', (drawn) => {
    expect(evaluate(alarm(3, 'missing'), range(drawn), 'OK')).toBe('OK')
  })

  it('retains ALARM as it retains any state when all is missing and missing is ignored', () => {
    expect(evaluate(alarm(3, 'ignore'), range('- - - - -'), 'ALARM')).toBe('ALARM')
  })
})

describe('the threshold', () => {
  it.each([
    ['GreaterThanThreshold', 'OK', 'ALARM', 'OK'],
    ['GreaterThanOrEqualToThreshold', 'ALARM', 'ALARM', 'OK'],
    ['LessThanThreshold', 'OK', 'OK', 'ALARM'],
    ['LessThanOrEqualToThreshold', 'ALARM', 'OK', 'ALARM'],
  ] as const)('%s', (ComparisonOperator, at, above, below) => {
    const one = { ...alarm(1, 'missing'), EvaluationPeriods: 1, ComparisonOperator }
    expect([1, 2, 0].map((value) => evaluate(one, [value], 'OK'))).toEqual([at, above, below])
  })
})

describe('datapoints', () => {
  const values = [
    { atSeconds: 0, value: 3 },
    { atSeconds: 59, value: 5 },
    { atSeconds: 120, value: 1 },
  ]

  it.each([
    ['Sum', [8, null, 1]],
    ['Maximum', [5, null, 1]],
    ['Minimum', [3, null, 1]],
    ['Average', [4, null, 1]],
    ['SampleCount', [2, null, 1]],
  ] as const)('%s of each whole period, none where nothing was emitted', (Statistic, expected) => {
    expect(datapoints({ Statistic, Period: 60 }, values, 185, 3)).toEqual(expected)
  })

  it('leaves out the period that is not over', () => {
    expect(datapoints({ Statistic: 'Sum', Period: 60 }, values, 179, 2)).toEqual([8, null])
  })
})

describe('watching', () => {
  it('tells the states in order, each once', () => {
    const definition = {
      ...alarm(2, 'notBreaching'),
      Namespace: 'N',
      MetricName: 'M',
      Dimensions: [],
      Statistic: 'Maximum',
      Period: 60,
    } as const
    const values = [0, 2, 2, 0, 0].map((value, index) => ({ atSeconds: index * 60, value }))
    expect(watch(definition, values, { from: 60, to: 360, extra: 2 })).toEqual(['INSUFFICIENT_DATA', 'OK', 'ALARM', 'OK'])
  })
})
