import { Duration, Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { describe, expect, it } from 'vitest'
import { OutboxDestination, OutboxRelay, type OutboxRelayProps } from '../../lib/index.js'
import { ConfigurationError } from '../../src/core/errors.js'
import { environmentOf, exampleStack, exampleTemplate, otherStack, resource, resourcesOf, temporaryApp } from './synthesis.js'

const busArn = 'arn:aws:events:eu-central-1:111122223333:event-bus/orders'
const canaryOf = (template: Template) =>
  ['AWS::Lambda::Function', 'AWS::Scheduler::Schedule', 'AWS::Events::Rule', 'AWS::CloudWatch::Alarm'].map(
    (type) => Object.keys(resourcesOf(template, type)).filter((id) => id.startsWith('OutboxCanary')).length,
  )
const nothing = [0, 0, 0, 0]
const one = [1, 1, 1, 1]

function propsOf(stack: Stack, changes: Partial<OutboxRelayProps>): OutboxRelayProps {
  return {
    cluster: {
      clusterArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:shop',
      secret: new Secret(stack, 'Secret'),
      database: 'shop',
    },
    destinations: { queue: OutboxDestination.queue(new Queue(stack, 'Queue')) },
    defaultDestination: 'queue',
    ...changes,
  }
}

describe('the canary of a bus of the own account', () => {
  it('is brought back by a rule that matches its source, its type, its installation and its destination', () => {
    const { EventBusName, EventPattern, Targets } = resource(
      exampleTemplate(),
      'AWS::Events::Rule',
      'OutboxCanaryRulebus',
    ).Properties
    expect(EventBusName).toBe('orders')
    expect(EventPattern).toEqual({
      source: ['orders'],
      'detail-type': ['OutboxCanary'],
      detail: { data: { installation: ['orders'], destination: ['bus'] } },
    })
    expect(Targets).toEqual([
      {
        Arn: { 'Fn::GetAtt': [expect.stringMatching(/^OutboxCanaryFunction/), 'Arn'] },
        Id: 'Target0',
        RetryPolicy: { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 0 },
      },
    ])
  })

  it('lets EventBridge invoke its function by that rule alone, and nobody repeats or stores up an invocation', () => {
    const { Principal, SourceArn, FunctionName } = resource(
      exampleTemplate(),
      'AWS::Lambda::Permission',
      'OutboxCanaryRule',
    ).Properties
    expect(Principal).toBe('events.amazonaws.com')
    expect(SourceArn).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^OutboxCanaryRulebus/), 'Arn'] })
    expect(FunctionName).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^OutboxCanaryFunction/), 'Arn'] })
    expect(resource(exampleTemplate(), 'AWS::Lambda::EventInvokeConfig', 'OutboxCanary').Properties).toMatchObject({
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: 60,
    })
  })

  it('matches the payload itself where the format is raw', () => {
    const template = exampleTemplate({
      destinations: { bus: { type: 'eventbridge', eventBusArn: busArn, format: 'raw' } },
      routes: [],
    })
    expect(resource(template, 'AWS::Events::Rule', 'OutboxCanaryRulebus').Properties.EventPattern).toMatchObject({
      detail: { installation: ['orders'], destination: ['bus'] },
    })
  })

  it('is written every five minutes, or as often as is set, and not before the migration', () => {
    const schedule = (changes?: Readonly<Record<string, unknown>>) =>
      resource(exampleTemplate(changes), 'AWS::Scheduler::Schedule', 'OutboxCanarySchedule')
    expect(schedule().Properties.ScheduleExpression).toBe('rate(5 minutes)')
    expect(schedule({ canaryMinutes: 1 }).Properties.ScheduleExpression).toBe('rate(1 minute)')
    const monitor = Object.keys(resourcesOf(exampleTemplate(), 'AWS::Scheduler::Schedule')).find((id) => id.includes('Monitor'))
    expect(schedule().DependsOn).toContain(monitor)
    expect(environmentOf(exampleTemplate(), 'OutboxCanaryFunction')).toMatchObject({ OUTBOX_CANARY_DESTINATIONS: '["bus"]' })
  })

  it('shares the tick in profile drain, so that the cluster can pause', () => {
    const template = exampleTemplate({ profile: 'drain', alarms: { backlogAgeSeconds: 1200 } })
    const expressions = ['Relay', 'Monitor', 'Canary'].map(
      (name) => resource(template, 'AWS::Scheduler::Schedule', `Outbox${name}Schedule`).Properties.ScheduleExpression,
    )
    expect(expressions).toEqual(Array(3).fill('cron(0/10 * * * ? *)'))
  })

  it('is off where that is set, and where there is no bus', () => {
    expect(canaryOf(exampleTemplate())).toEqual(one)
    expect(canaryOf(exampleTemplate({ canary: 'off' }))).toEqual(nothing)
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, {}))
    expect(outbox.canaryFunction).toBeUndefined()
    expect(canaryOf(Template.fromStack(stack))).toEqual(nothing)
  })

  it('also watches buses that are added later, by the same function', () => {
    const stack = otherStack()
    const outbox = new OutboxRelay(stack, 'Outbox', propsOf(stack, {}))
    for (const name of ['first', 'second']) outbox.addDestination(name, OutboxDestination.eventBus(new EventBus(stack, name)))
    const template = Template.fromStack(stack)
    expect(canaryOf(template)).toEqual([1, 1, 2, 2])
    expect(environmentOf(template, 'OutboxCanaryFunction').OUTBOX_CANARY_DESTINATIONS).toBe('["first","second"]')
    expect([...outbox.canaryAlarms.keys()]).toEqual(['first', 'second'])
    expect(outbox.canaryFunction?.node.path).toBe('shop/Outbox/Canary/Function')
  })
})

describe('the canary of a bus that is not of the own account', () => {
  const foreign = { type: 'eventbridge', eventBusArn: busArn.replace('111122223333', '444455556666') }

  it('is off, and a warning says why', () => {
    const stack = exampleStack({ destinations: { bus: foreign }, routes: [] })
    expect(canaryOf(Template.fromStack(stack))).toEqual(nothing)
    Annotations.fromStack(stack).hasWarning(
      '/outbox-relay-orders/Outbox',
      'destinations.bus is a bus of account 444455556666, and the stack is in 111122223333: no canary watches it, ' +
        "since a bus's rules are made in its own account. Have its owner watch for events that stop arriving, " +
        'and set canary to "off" or acknowledge this warning [ack: aurora-outbox-relay:canaryOff]',
    )
    const quiet = exampleStack({ destinations: { bus: foreign }, routes: [], canary: 'off' })
    expect(Annotations.fromStack(quiet).findWarning('*', Match.stringLikeRegexp('canary'))).toEqual([])
  })

  it('is off, with a warning, where nobody can tell', () => {
    const stack = new Stack(temporaryApp(), 'anywhere')
    const bus = OutboxDestination.eventBus(EventBus.fromEventBusArn(stack, 'Bus', busArn))
    new OutboxRelay(stack, 'Outbox', propsOf(stack, { destinations: { bus }, defaultDestination: 'bus' }))
    expect(canaryOf(Template.fromStack(stack))).toEqual(nothing)
    expect(JSON.stringify(Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('canary')))).toContain(
      "destinations.bus is a bus of an account that may not be this stack's (set the stack's env): no canary watches it",
    )
  })
})

describe('the interval of the canary', () => {
  const refusal = (changes: Partial<OutboxRelayProps>): string => {
    const stack = otherStack()
    try {
      new OutboxRelay(stack, 'Outbox', propsOf(stack, changes))
      return 'accepted'
    } catch (error) {
      if (error instanceof ConfigurationError) return error.message
      throw error
    }
  }

  it('is whole minutes, 1 to 60, and that of the tick in profile drain', () => {
    const allowed = 'but canaries are written every 1 to 60 whole minutes. Set it to one of them'
    expect(refusal({ canaryInterval: Duration.seconds(90) })).toBe(`canaryMinutes is 1.5, ${allowed}`)
    expect(refusal({ canaryInterval: Duration.hours(2) })).toBe(`canaryMinutes is 120, ${allowed}`)
    expect(refusal({ profile: 'drain', canaryInterval: Duration.minutes(5) })).toBe(
      'canaryMinutes is 5, but in profile "drain" the canary shares the tick of 10 minutes, so that the cluster can pause. Leave it out',
    )
    expect(refusal({ canaryInterval: Duration.minutes(60) })).toBe('accepted')
  })
})
