import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { OutboxCluster } from './outbox-relay-props.js'

/** What a function needs for its calls of the Data API, and no more. */
export function databaseRights(cluster: OutboxCluster, actions: readonly string[]): readonly PolicyStatement[] {
  const { clusterArn, secret } = cluster
  return [
    new PolicyStatement({ actions: [...actions], resources: [clusterArn] }),
    // the Data API reads the secret in the caller's name
    new PolicyStatement({ actions: ['secretsmanager:GetSecretValue'], resources: [secret.secretArn] }),
    ...(secret.encryptionKey === undefined
      ? []
      : [
          new PolicyStatement({
            actions: ['kms:Decrypt'],
            resources: [secret.encryptionKey.keyArn],
            conditions: { StringEquals: { 'kms:ViaService': `secretsmanager.${secret.env.region}.amazonaws.com` } },
          }),
        ]),
  ]
}
