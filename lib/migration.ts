import { Duration } from 'aws-cdk-lib'
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda'
import { Trigger } from 'aws-cdk-lib/triggers'
import type { Construct } from 'constructs'

export interface MigrationProps {
  readonly function: LambdaFunction
  /** How long the function may take. */
  readonly timeout: Duration
  /** What must not change before the schema is there. */
  readonly before: readonly Construct[]
}

/**
 * Runs the migration at each deployment that changes it, and only then lets the other functions change: a failed migration
 * fails the deployment with its reason and leaves the relay that runs as it is. On delete nothing is called, so removing
 * the stack removes no event.
 *
 * The trigger comes with a function of the CDK's own. Two of its rights have a `*`: the account's basic execution policy, for
 * its log, and every version of the one migration function, since it invokes the version that this deployment made.
 */
export function migrateAtDeploy(scope: Construct, id: string, props: MigrationProps): Trigger {
  return new Trigger(scope, id, {
    handler: props.function,
    // longer than the function itself may take: a caller that gives up first would send the invocation again
    timeout: props.timeout.plus(Duration.seconds(15)),
    executeBefore: [...props.before],
  })
}
