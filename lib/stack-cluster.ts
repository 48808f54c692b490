import { Duration } from 'aws-cdk-lib'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import type { Construct } from 'constructs'
import { OutboxDatabase } from './database.js'
import type { OutboxCluster } from './outbox-relay-props.js'
import { clusterDefaults } from './stack-config-defaults.js'
import type { StackConfig } from './stack-config-schema.js'

/** The cluster of the configuration: imported, or made in the scope. */
export function clusterOf(
  scope: Construct,
  { clusterArn, secretArn, secretKeyArn, create, database, schema }: StackConfig['cluster'],
): { readonly cluster: OutboxCluster; readonly created?: OutboxDatabase } {
  const imported = (id: string, keyArn: string | undefined) =>
    keyArn === undefined ? undefined : Key.fromKeyArn(scope, id, keyArn)
  if (clusterArn !== undefined && secretArn !== undefined) {
    const secret = Secret.fromSecretAttributes(scope, 'Secret', {
      secretCompleteArn: secretArn,
      encryptionKey: imported('SecretKey', secretKeyArn),
    })
    return { cluster: { clusterArn, secret, database, schema } }
  }

  const chosen = { ...clusterDefaults, ...create }
  const { minCapacity, maxCapacity, engineVersion, deletionProtection, network } = chosen
  const created = new OutboxDatabase(scope, 'Database', {
    database,
    minCapacity,
    maxCapacity,
    engineVersion,
    deletionProtection,
    backupRetention: Duration.days(chosen.backupRetentionDays),
    key: imported('DatabaseKey', chosen.keyArn),
    network,
  })
  const { clusterArn: createdArn } = created.cluster
  return {
    created,
    cluster: { clusterArn: createdArn, secret: created.masterSecret, database, schema, minCapacity, waitFor: created },
  }
}
