import { Duration, Stack } from 'aws-cdk-lib'
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import { Schedule, ScheduleExpression, TimeWindow } from 'aws-cdk-lib/aws-scheduler'
import { LambdaInvoke } from 'aws-cdk-lib/aws-scheduler-targets'
import type { Construct } from 'constructs'

export interface TickProps {
  readonly description: string
  readonly expression: ScheduleExpression
  readonly target: IFunction
}

/**
 * A schedule whose every tick may be lost. Scheduler's defaults (185 retries within 24 hours) would store up the ticks of an
 * outage and send them all when it is over.
 */
export function tick(scope: Construct, id: string, props: TickProps): Schedule {
  const { functionArn } = props.target
  // the target's own role would also reach every version and alias
  const role = new Role(scope, `${id}Role`, {
    assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
      conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(scope).account } },
    }),
    inlinePolicies: {
      Invoke: new PolicyDocument({
        statements: [new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [functionArn] })],
      }),
    },
  })
  return new Schedule(scope, id, {
    description: props.description,
    schedule: props.expression,
    timeWindow: TimeWindow.off(),
    target: new LambdaInvoke(props.target, {
      role: role.withoutPolicyUpdates(),
      retryAttempts: 0,
      maxEventAge: Duration.minutes(1),
    }),
  })
}

/** In profile `drain` all tick together, on the clock, cleanup on a tick of the others: the cluster wakes once for all. */
export function tickExpression(profile: 'continuous' | 'drain', period: Duration): ScheduleExpression {
  if (profile === 'continuous') return ScheduleExpression.rate(period)
  const minutes = period.toMinutes()
  return ScheduleExpression.cron({ minute: minutes === 60 ? '0' : `0/${minutes}` })
}
