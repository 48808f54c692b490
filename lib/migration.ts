import { CustomResource, Duration, FileSystem } from 'aws-cdk-lib'
import type { Construct, IDependable } from 'constructs'
import { handlerFolder, type RelayFunction } from './relay-function.js'

export interface MigrationProps {
  readonly function: RelayFunction
  readonly timeout: Duration
  /** What the function is told: another setting is another migration. */
  readonly environment: Readonly<Record<string, string>>
  /** What must be there first. */
  readonly after: readonly IDependable[]
  /** What must not change before the schema is there. */
  readonly before: readonly Construct[]
}

/**
 * Runs the migration at each deployment that changes it, and only then lets the other functions change: a failed migration
 * fails the deployment with its reason and leaves the relay that runs as it is. On delete nothing is done, so removing the
 * stack removes no event.
 *
 * CloudFormation calls the function itself, which answers it (lambdas/migrate/cloudformation.ts): no provider of the CDK
 * stands between them, with a runtime, a log and rights of its own.
 */
export function migrateAtDeploy(scope: Construct, id: string, props: MigrationProps): CustomResource {
  const migration = new CustomResource(scope, id, {
    resourceType: 'Custom::OutboxMigration',
    serviceToken: props.function.function.functionArn,
    // the call may wait a minute for its turn (relay-function.ts); later than this nobody answers any more
    serviceTimeout: props.timeout.plus(Duration.seconds(90)),
    properties: { Release: FileSystem.fingerprint(handlerFolder('migrate')), ...props.environment },
  })
  // its rights, and what becomes of a call that fails
  migration.node.addDependency(props.function, ...props.after)
  for (const construct of props.before) construct.node.addDependency(migration)
  return migration
}
