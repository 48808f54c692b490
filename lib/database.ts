import { Annotations, Duration, RemovalPolicy, Validations } from 'aws-cdk-lib'
import { type IVpc, IpAddresses, SecurityGroup, SubnetType, Vpc } from 'aws-cdk-lib/aws-ec2'
import type { IKey } from 'aws-cdk-lib/aws-kms'
import {
  AuroraPostgresEngineVersion,
  ClusterInstance,
  Credentials,
  DatabaseCluster,
  DatabaseClusterEngine,
} from 'aws-cdk-lib/aws-rds'
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager'
import { Construct } from 'constructs'
import { ConfigurationError } from '../src/core/errors.js'

export interface OutboxDatabaseProps {
  /** The name of the first database in the cluster. */
  readonly database: string
  /** The least it runs with, in ACU: 0 (it pauses after 5 minutes without a connection), or 0.5 to 256 in halves. */
  readonly minCapacity: number
  /** The most it scales to, in ACU: 1 to 256 in halves. */
  readonly maxCapacity: number
  /** Major and minor version of PostgreSQL, `17.9` for one. Another number here upgrades the cluster. */
  readonly engineVersion: string
  /** Whether a cluster that somebody deletes stays. */
  readonly deletionProtection: 'on' | 'off'
  /** How long its automated backups are kept, 1 to 35 days. */
  readonly backupRetention: Duration
  /**
   * What seals its storage and its master secret. It cannot be changed later.
   *
   * @default - the account's own keys of RDS and Secrets Manager
   */
  readonly key?: IKey | undefined
  /**
   * Subnets of a VPC that is there, in two availability zones at least.
   *
   * @default - a new VPC, without gateway and route to anywhere
   */
  readonly network?: { readonly vpcId: string; readonly subnetIds: readonly string[] } | undefined
}

/**
 * An Aurora PostgreSQL Serverless v2 cluster of one instance that is reached through the RDS Data API alone: no security group
 * rule lets anybody in.
 *
 * RDS itself makes, keeps and rotates the master secret (every 7 days): rotation by Secrets Manager would need a function in
 * the VPC, a way from there to Secrets Manager and an ingress rule.
 */
export class OutboxDatabase extends Construct {
  readonly cluster: DatabaseCluster
  readonly masterSecret: ISecret

  constructor(scope: Construct, id: string, props: OutboxDatabaseProps) {
    super(scope, id)
    const vpc = props.network === undefined ? newVpc(this) : existingVpc(this, props.network)
    const [major = ''] = props.engineVersion.split('.')
    this.cluster = new DatabaseCluster(this, 'Cluster', {
      engine: DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.of(props.engineVersion, major) }),
      writer: ClusterInstance.serverlessV2('Writer', { publiclyAccessible: false }),
      serverlessV2MinCapacity: props.minCapacity,
      serverlessV2MaxCapacity: props.maxCapacity,
      // the shortest that Aurora takes, and shorter than the shortest tick of profile `drain` (10 minutes)
      ...(props.minCapacity === 0 ? { serverlessV2AutoPauseDuration: Duration.minutes(5) } : {}),
      enableDataApi: true,
      defaultDatabaseName: props.database,
      port: 5432,
      vpc,
      vpcSubnets: { subnetType: SubnetType.PRIVATE_ISOLATED },
      securityGroups: [
        new SecurityGroup(this, 'SecurityGroup', {
          vpc,
          description: 'The cluster of an outbox: reached through the RDS Data API alone',
          allowAllOutbound: false,
        }),
      ],
      credentials: Credentials.fromUsername('postgres', props.key === undefined ? {} : { encryptionKey: props.key }),
      manageMasterUserPassword: true,
      // for services with a role instead of a password; it lets nobody in whom no GRANT names
      iamAuthentication: true,
      storageEncrypted: true,
      ...(props.key === undefined ? {} : { storageEncryptionKey: props.key }),
      parameters: {
        // a message's detail quotes rows, payloads included
        log_error_verbosity: 'terse',
        'rds.force_ssl': '1',
      },
      cloudwatchLogsExports: ['postgresql'],
      backup: { retention: props.backupRetention },
      copyTagsToSnapshot: true,
      deletionProtection: props.deletionProtection === 'on',
      // whoever switches the protection off and removes the stack still finds the events in a last snapshot
      removalPolicy: RemovalPolicy.SNAPSHOT,
    })
    if (this.cluster.secret === undefined) throw new ConfigurationError('cluster', 'cluster has no master secret')
    this.masterSecret = this.cluster.secret
  }
}

/** Two subnets from which no route leads anywhere: all that a cluster needs that is reached through the Data API. */
function newVpc(scope: Construct): IVpc {
  const vpc = new Vpc(scope, 'Vpc', {
    ipAddresses: IpAddresses.cidr('10.0.0.0/24'),
    maxAzs: 2,
    natGateways: 0,
    subnetConfiguration: [{ name: 'Database', subnetType: SubnetType.PRIVATE_ISOLATED, cidrMask: 26 }],
    // the CDK would bring a function that empties the default security group, in which nothing is
    restrictDefaultSecurityGroup: false,
  })
  Validations.of(vpc).acknowledge({
    id: 'AwsSolutions-VPC7',
    reason: 'No gateway, no route out and no ingress rule: there is no traffic that a flow log could show',
  })
  return vpc
}

function existingVpc(
  scope: Construct,
  { vpcId, subnetIds }: { readonly vpcId: string; readonly subnetIds: readonly string[] },
): IVpc {
  const vpc = Vpc.fromVpcAttributes(scope, 'Vpc', {
    vpcId,
    isolatedSubnetIds: [...subnetIds],
    // The CDK wants as many as there are subnets, and nothing here uses them: RDS reads each subnet's own.
    availabilityZones: subnetIds.map((subnetId) => `of ${subnetId}`),
  })
  // nor does anything here use route tables
  Annotations.of(vpc).acknowledgeWarning('@aws-cdk/aws-ec2:noSubnetRouteTableId')
  return vpc
}
