import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { alarmCatalogue, type AlarmName } from '../../lib/monitoring/alarm-catalogue.js'
import { metricCatalogue, metricNamespace } from '../../src/telemetry/metrics.js'
import { evaluate, type AlarmDefinition } from '../support/alarm-evaluator.js'
import { exampleTemplate, resourcesOf, type Resource } from './synthesis.js'

interface AlarmProperties extends AlarmDefinition {
  readonly AlarmDescription: unknown
  readonly AlarmActions: readonly unknown[]
  readonly OKActions: readonly unknown[]
  readonly Metrics?: unknown
}

const template = exampleTemplate()
const destinations = ['bus', 'billing', 'shipping']
const nameOf = (id: string): AlarmName => {
  const [, name = ''] = /^Outbox(\w+?)Alarm/.exec(id) ?? []
  return `${name.charAt(0).toLowerCase()}${name.slice(1)}` as AlarmName
}
const alarmsOf = (from = template) =>
  Object.entries(resourcesOf(from, 'AWS::CloudWatch::Alarm')).map(
    ([id, resource]) => [nameOf(id), resource as Resource & { readonly Properties: AlarmProperties }] as const,
  )
const alarms = alarmsOf()

/** What Lambda itself emits for a function, as far as something here looks at it. */
const lambdaMetrics = ['Invocations', 'Errors', 'Throttles', 'Duration', 'ConcurrentExecutions', 'AsyncEventsDropped']

/** Text that CloudFormation completes, with `<reference>` where it does. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const join = (value as { readonly 'Fn::Join'?: readonly [string, readonly unknown[]] })['Fn::Join']
  return join === undefined ? '<reference>' : join[1].map(textOf).join(join[0])
}

describe('each alarm', () => {
  it('of the catalogue is there once, the one on canaries once for each bus', () => {
    expect(alarms.map(([name]) => name).sort()).toEqual(Object.keys(alarmCatalogue).sort())
  })

  it.each(alarms)('%s tells the topic when it goes off and when it is over, and says what silence means', (_, { Properties }) => {
    const { AlarmActions, OKActions, TreatMissingData, Metrics } = Properties
    expect(AlarmActions).toEqual([{ Ref: expect.stringMatching(/^OutboxAlarmTopic/) as string }])
    expect(OKActions).toEqual(AlarmActions)
    expect(['breaching', 'notBreaching', 'ignore']).toContain(TreatMissingData)
    // metric math, which not every emulator deploys
    expect(Metrics).toBeUndefined()
  })

  it.each(alarms)(
    '%s says what it means, the first command and the section, within the 1024 characters there are',
    (name, { Properties }) => {
      const text = textOf(Properties.AlarmDescription)
      expect(text).toMatch(/^Outbox orders: .+\. First command: .+\. Then docs\/runbook\.md, section ".+"$/)
      expect(text).toContain(`section "${alarmCatalogue[name].section}"`)
      expect(text).not.toMatch(/<(?!reference>)/)
      expect(text.length).toBeLessThan(900)
    },
  )

  it('every alarm and the dashboard send to the runbook where the team reads it, if that is said', () => {
    const runbookUrl = 'https://example.com/outbox/runbook'
    const template = exampleTemplate({ alarms: { runbookUrl } })
    for (const { Properties } of Object.values(resourcesOf(template, 'AWS::CloudWatch::Alarm')))
      expect(textOf(Properties.AlarmDescription)).toContain(`Then ${runbookUrl}, section`)
    for (const { Properties } of Object.values(resourcesOf(template, 'AWS::CloudWatch::Dashboard')))
      expect(JSON.stringify(Properties.DashboardBody)).toContain(runbookUrl)
  })

  it.each(alarms)('%s looks back no further than the day that CloudWatch allows', (_, { Properties }) => {
    expect(Properties.Period * Properties.EvaluationPeriods).toBeLessThanOrEqual(86_400)
  })

  const watchedSchedule = {
    backlogAge: 'Monitor',
    relaySilent: 'Relay',
    monitorSilent: 'Monitor',
    cleanupOverdue: 'Cleanup',
    canary: 'Canary',
  } as const
  it('that takes silence for a fault does not exist before the schedule of what it listens to', () => {
    const silent = alarms.filter(([, { Properties }]) => Properties.TreatMissingData === 'breaching')
    expect(silent.map(([name]) => name).sort()).toEqual(Object.keys(watchedSchedule).sort())
    for (const [name, { DependsOn }] of silent) {
      const begins = `Outbox${watchedSchedule[name as keyof typeof watchedSchedule]}Schedule`
      expect(DependsOn, name).toContainEqual(expect.stringMatching(`^${begins}`))
    }
  })

  it.each(['failedEvents', 'destinationsMissing', 'circuitOpen', 'destinationMisconfigured'])(
    '%s is not over because nobody measures any more',
    (name) => {
      const [, { Properties }] = alarms.find(([each]) => each === name)!
      const silence = [null, null, null]
      expect(evaluate(Properties, silence, 'ALARM')).toBe('ALARM')
      expect(evaluate(Properties, silence, 'OK')).toBe('OK')
    },
  )

  it.each(alarms)('%s watches a metric that something emits, with its dimensions', (_, { Properties }) => {
    const { Namespace, MetricName, Dimensions } = Properties
    const dimensions = Dimensions.map(({ Name }) => Name).sort()
    if (Namespace === 'AWS/Lambda') {
      expect(lambdaMetrics).toContain(MetricName)
      expect(dimensions).toEqual(['FunctionName'])
      return
    }
    expect(Namespace).toBe(metricNamespace)
    expect(Object.keys(metricCatalogue)).toContain(MetricName)
    const { byDestination } = metricCatalogue[MetricName as keyof typeof metricCatalogue]
    expect(dimensions).toEqual(byDestination ? ['destination', 'service'] : ['service'])
  })

  it('is driven into its state, and out of it, by a test', () => {
    const tests = readdirSync('test/infra')
      .filter((file) => /^alarms-of-\w+\.test\.ts$/.test(file))
      .map((file) => readFileSync(`test/infra/${file}`, 'utf8'))
      .join('\n')
    const proven = [...tests.matchAll(/expectStates\('(\w+)', \['OK', 'ALARM', 'OK'\]\)/g)].map(([, name]) => name)
    expect([...new Set(proven)].sort()).toEqual(Object.keys(alarmCatalogue).sort())
  })

  it('follows the tick in profile drain', () => {
    const drained = alarmsOf(exampleTemplate({ profile: 'drain', tickMinutes: 20, alarms: {} }))
    const periods = drained
      .filter(([name]) => name !== 'cleanupOverdue')
      .map(([name, { Properties }]) => [name, Properties.Period])
    expect(periods.filter(([, period]) => period !== 1200)).toEqual([])
    const thresholdOf = (name: AlarmName) => drained.find(([each]) => each === name)?.[1].Properties.Threshold
    expect(thresholdOf('backlogAge')).toBe(2400)
  })
})

describe('the dashboard', () => {
  type Entry = readonly unknown[]
  interface Widget {
    readonly type: string
    readonly properties: { readonly metrics?: readonly Entry[]; readonly alarms?: readonly unknown[]; readonly title?: string }
  }
  const bodyOf = (from = template) => {
    const [dashboard] = Object.values(resourcesOf(from, 'AWS::CloudWatch::Dashboard'))
    return textOf(dashboard?.Properties.DashboardBody)
  }
  const { widgets } = JSON.parse(bodyOf()) as { readonly widgets: readonly Widget[] }
  const metrics = widgets.flatMap(({ properties }) => properties.metrics ?? []).filter(([first]) => typeof first === 'string')

  it('or an alarm shows every metric of the catalogue, for each destination where it is split', () => {
    const dimensionsOf = (entry: Entry) => entry.slice(2).filter((part) => typeof part === 'string')
    const shown = metrics.map((entry) => [entry[0], entry[1], ...dimensionsOf(entry)].join(' '))
    const watched = alarms.map(
      ([
        ,
        {
          Properties: { Namespace, MetricName, Dimensions },
        },
      ]) => [Namespace, MetricName, ...Dimensions.flatMap(({ Name, Value }) => [Name, String(Value)])].join(' '),
    )
    const all = new Set([...shown, ...watched].map((each) => each.split(' ').sort().join(' ')))
    const missing = Object.entries(metricCatalogue).flatMap(([name, { byDestination, emittedBy }]) => {
      const own = emittedBy === 'canary' ? ['bus'] : destinations
      const sets = byDestination ? own.map((each) => ['destination', each, 'service', 'orders']) : [['service', 'orders']]
      return sets.map((set) => [metricNamespace, name, ...set].sort().join(' ')).filter((each) => !all.has(each))
    })
    expect(missing).toEqual([])
  })

  it('shows nothing that nothing emits', () => {
    const unknown = metrics.filter(([namespace, name]) =>
      namespace === 'AWS/Lambda' ? !lambdaMetrics.includes(String(name)) : !Object.hasOwn(metricCatalogue, String(name)),
    )
    expect(unknown).toEqual([])
  })

  it('shows every alarm', () => {
    expect(widgets.find(({ type }) => type === 'alarm')?.properties.alarms).toHaveLength(alarms.length)
  })

  it('has no graph without a metric, which CloudWatch would refuse', () => {
    expect(widgets.filter(({ type, properties }) => type === 'metric' && (properties.metrics ?? []).length === 0)).toEqual([])
  })

  it('is the same at each synthesis', () => {
    expect(bodyOf(exampleTemplate({}))).toBe(bodyOf())
  })
})
