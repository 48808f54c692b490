import { type Duration, Stack, Validations } from 'aws-cdk-lib'
import { type PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import type { IKey } from 'aws-cdk-lib/aws-kms'
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda'
import { CfnRotationSchedule, type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Construct, type IDependable } from 'constructs'
import { MAX_INSTALLATION_CHARACTERS, userName, type UserRole } from '../src/core/database-user.js'
import { ConfigurationError } from '../src/core/errors.js'
import { secretRights } from './database-rights.js'

export interface DatabaseUsersProps {
  readonly installation: string
  readonly roles: readonly UserRole[]
  /** @default - the account's own key of Secrets Manager */
  readonly encryptionKey?: IKey | undefined
}

/**
 * A secret for the database user of each function: its name, and a password that nobody has seen. The migration makes the
 * users themselves.
 */
export class DatabaseUsers extends Construct {
  readonly #secrets = new Map<UserRole, Secret>()

  /** @throws ConfigurationError if the installation's name leaves no room for a user's. */
  constructor(scope: Construct, id: string, { installation, roles, encryptionKey }: DatabaseUsersProps) {
    super(scope, id)
    if (installation.length > MAX_INSTALLATION_CHARACTERS)
      throw new ConfigurationError(
        'installation',
        `installation is "${installation}", ${installation.length} characters, and database users are named after it, which ` +
          `PostgreSQL allows 63 characters. Give it a name of at most ${MAX_INSTALLATION_CHARACTERS}`,
      )
    for (const role of roles) {
      const secret = new Secret(this, capitalized(role), {
        description: `Outbox ${installation}: database user of the ${role} function`,
        encryptionKey,
        // Another value here makes CloudFormation generate another password, for a user that has the one of today.
        generateSecretString: {
          secretStringTemplate: JSON.stringify({ username: userName(installation, role) }),
          generateStringKey: 'password',
          passwordLength: 40,
          excludePunctuation: true,
        },
      })
      this.#secrets.set(role, secret)
    }
  }

  secretOf(role: UserRole): ISecret {
    const secret = this.#secrets.get(role)
    if (secret === undefined) throw new Error(`there is no database user for ${role}`)
    return secret
  }

  /** Role -> ARN, as the migration reads it. */
  get secretArns(): Readonly<Partial<Record<UserRole, string>>> {
    return Object.fromEntries([...this.#secrets].map(([role, { secretArn }]) => [role, secretArn]))
  }

  /** What the migration's role needs: to read the secrets, and to write a new version in a rotation. */
  get makerStatements(): readonly PolicyStatement[] {
    const actions = ['GetSecretValue', 'PutSecretValue', 'UpdateSecretVersionStage'].map((name) => `secretsmanager:${name}`)
    return [...this.#secrets.values()].flatMap((secret) => secretRights(secret, actions, ['kms:Decrypt', 'kms:GenerateDataKey']))
  }

  /**
   * Lets Secrets Manager rotate each secret by the migration's function: every so often, or, with a duration of 0, whenever
   * somebody asks for it. `after`: the users must be there.
   */
  rotateBy(rotator: LambdaFunction, every: Duration, after: IDependable): void {
    const { account } = Stack.of(this)
    rotator.addPermission('RotationPermission', {
      principal: new ServicePrincipal('secretsmanager.amazonaws.com'),
      sourceAccount: account,
    })
    if (every.toDays() === 0) {
      this.keepPasswords('Rotated whenever somebody asks for it: the configuration turns the schedule off.')
      return
    }
    for (const [role, secret] of this.#secrets) {
      // the construct's own schedule would give the function GetRandomPassword on "*"
      const schedule = new CfnRotationSchedule(this, `${capitalized(role)}Rotation`, {
        secretId: secret.secretArn,
        rotationLambdaArn: rotator.functionArn,
        rotateImmediatelyOnUpdate: false,
        rotationRules: { automaticallyAfterDays: every.toDays() },
      })
      schedule.node.addDependency(
        after,
        ...rotator.permissionsNode.findAll().filter((one) => one.node.id === 'RotationPermission'),
      )
    }
  }

  /** No schedule: for cdk-nag, which asks for one. */
  keepPasswords(reason: string): void {
    for (const secret of this.#secrets.values()) Validations.of(secret).acknowledge({ id: 'AwsSolutions-SMG4', reason })
  }
}

const capitalized = (role: UserRole): string => role.charAt(0).toUpperCase() + role.slice(1)
