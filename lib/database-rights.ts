import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'

/** The calls of a transaction. */
export const transactionCalls = [
  'rds-data:BeginTransaction',
  'rds-data:ExecuteStatement',
  'rds-data:CommitTransaction',
  'rds-data:RollbackTransaction',
]

/** What a function needs to call the Data API as the user of one secret, and no more. */
export function databaseRights(clusterArn: string, secret: ISecret, actions: readonly string[]): readonly PolicyStatement[] {
  return [
    new PolicyStatement({ actions: [...actions], resources: [clusterArn] }),
    // the Data API reads the secret in the caller's name
    ...secretRights(secret, ['secretsmanager:GetSecretValue'], ['kms:Decrypt']),
  ]
}

/** Calls on one secret; of its key, where that is a customer-managed one, through Secrets Manager alone. */
export function secretRights(
  secret: ISecret,
  actions: readonly string[],
  keyActions: readonly string[],
): readonly PolicyStatement[] {
  return [
    new PolicyStatement({ actions: [...actions], resources: [secret.secretArn] }),
    ...(secret.encryptionKey === undefined
      ? []
      : [
          new PolicyStatement({
            actions: [...keyActions],
            resources: [secret.encryptionKey.keyArn],
            conditions: { StringEquals: { 'kms:ViaService': `secretsmanager.${secret.env.region}.amazonaws.com` } },
          }),
        ]),
  ]
}
