import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { describe, expect, it } from 'vitest'
import { parseStackConfig } from '../../lib/stack-config.js'
import { OutboxRelayStack } from '../../lib/outbox-relay-stack.js'
import { exampleConfig, exampleStack, exampleTemplate, resource, resourcesOf, temporaryApp } from './synthesis.js'

const created = (create: Readonly<Record<string, unknown>> = {}, more: Readonly<Record<string, unknown>> = {}) =>
  exampleTemplate({ cluster: { create, database: 'orders' }, ...more })

const cluster = (template: Template) => resource(template, 'AWS::RDS::DBCluster', 'DatabaseCluster')

describe('a cluster that the stack makes', () => {
  it('is serverless, sealed, protected, backed up, and has the Data API on', () => {
    const { Properties } = cluster(created())
    expect(Properties).toMatchObject({
      Engine: 'aurora-postgresql',
      EngineVersion: '17.9',
      DatabaseName: 'orders',
      EnableHttpEndpoint: true,
      StorageEncrypted: true,
      DeletionProtection: true,
      BackupRetentionPeriod: 7,
      CopyTagsToSnapshot: true,
      EnableCloudwatchLogsExports: ['postgresql'],
      ServerlessV2ScalingConfiguration: { MinCapacity: 0.5, MaxCapacity: 4 },
    })
    expect(Properties.ServerlessV2ScalingConfiguration).not.toHaveProperty('SecondsUntilAutoPause')
    const { Properties: instance } = resource(created(), 'AWS::RDS::DBInstance', 'DatabaseCluster')
    expect(instance).toMatchObject({ DBInstanceClass: 'db.serverless', PubliclyAccessible: false })
  })

  it('is what the configuration says', () => {
    const keyArn = 'arn:aws:kms:eu-central-1:111122223333:key/orders'
    const template = created(
      {
        minCapacity: 0,
        maxCapacity: 16.5,
        engineVersion: '16.3',
        deletionProtection: 'off',
        backupRetentionDays: 35,
        keyArn,
      },
      { profile: 'drain', alarms: {} },
    )
    expect(cluster(template).Properties).toMatchObject({
      EngineVersion: '16.3',
      DeletionProtection: false,
      BackupRetentionPeriod: 35,
      KmsKeyId: keyArn,
      MasterUserSecret: { KmsKeyId: keyArn },
      ServerlessV2ScalingConfiguration: { MinCapacity: 0, MaxCapacity: 16.5, SecondsUntilAutoPause: 300 },
    })
    expect(resource(template, 'AWS::RDS::DBClusterParameterGroup', 'DatabaseCluster').Properties.Family).toBe(
      'aurora-postgresql16',
    )
  })

  it('is never destroyed with its data: it leaves a snapshot, whether it is removed or replaced', () => {
    expect(cluster(created({ deletionProtection: 'off' }))).toMatchObject({
      DeletionPolicy: 'Snapshot',
      UpdateReplacePolicy: 'Snapshot',
    })
  })

  it('keeps the stack from being destroyed, since its instance would be deleted first', () => {
    const stack = (create: object) => exampleStack({ cluster: { create, database: 'orders' } })
    expect(stack({}).terminationProtection).toBe(true)
    expect(stack({ deletionProtection: 'off' }).terminationProtection).toBe(false)
  })

  it('has a master secret that RDS keeps and rotates, and that the migration may read', () => {
    const template = created()
    expect(cluster(template).Properties).toMatchObject({ ManageMasterUserPassword: true, MasterUsername: 'postgres' })
    expect(cluster(template).Properties).not.toHaveProperty('MasterUserPassword')
    const { PolicyDocument } = resource(template, 'AWS::IAM::Policy', 'OutboxMigrateRole').Properties as {
      readonly PolicyDocument: { readonly Statement: unknown }
    }
    expect(PolicyDocument.Statement).toContainEqual({
      Effect: 'Allow',
      Action: 'secretsmanager:GetSecretValue',
      Resource: { 'Fn::GetAtt': [expect.stringMatching(/^DatabaseCluster/) as string, 'MasterUserSecret.SecretArn'] },
    })
  })

  it('writes no row into its log, and takes no connection in the clear', () => {
    expect(resource(created(), 'AWS::RDS::DBClusterParameterGroup', 'DatabaseCluster').Properties.Parameters).toEqual({
      log_error_verbosity: 'terse',
      'rds.force_ssl': '1',
    })
  })

  it('is there, with its instance, before the migration begins', () => {
    const { DependsOn } = resource(created(), 'Custom::OutboxMigration', 'OutboxMigration')
    const instances = Object.keys(resourcesOf(created(), 'AWS::RDS::DBInstance'))
    expect(instances).toHaveLength(1)
    expect(DependsOn).toEqual(expect.arrayContaining(instances))
  })

  it('is named in the outputs, with its secret', () => {
    const outputs = created().findOutputs('*')
    expect(outputs).toHaveProperty('ClusterArn')
    expect(outputs).toHaveProperty('MasterSecretArn')
    expect(exampleTemplate().findOutputs('*')).not.toHaveProperty('ClusterArn')
  })
})

describe('the network of a cluster that the stack makes', () => {
  it('is a new VPC of two subnets that leads nowhere, and lets nobody in', () => {
    const template = created()
    template.resourceCountIs('AWS::EC2::VPC', 1)
    template.resourceCountIs('AWS::EC2::Subnet', 2)
    for (const type of ['InternetGateway', 'NatGateway', 'Route', 'SecurityGroupIngress', 'VPCEndpoint'])
      template.resourceCountIs(`AWS::EC2::${type}`, 0)
    for (const { Properties } of Object.values(resourcesOf(template, 'AWS::EC2::SecurityGroup'))) {
      expect(Properties).not.toHaveProperty('SecurityGroupIngress')
      expect(Properties.SecurityGroupEgress).toMatchObject([{ CidrIp: '255.255.255.255/32' }])
    }
  })

  it('or subnets of a VPC that is there, without a look-up', () => {
    const subnetIds = ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1', 'subnet-0123456789abcdef2']
    const stack = exampleStack({
      cluster: { create: { network: { vpcId: 'vpc-0123456789abcdef0', subnetIds } }, database: 'orders' },
    })
    expect(Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('subnet'))).toEqual([])
    const template = Template.fromStack(stack)
    template.resourceCountIs('AWS::EC2::VPC', 0)
    template.resourceCountIs('AWS::EC2::Subnet', 0)
    template.hasResourceProperties('AWS::RDS::DBSubnetGroup', { SubnetIds: subnetIds })
    template.hasResourceProperties('AWS::EC2::SecurityGroup', { VpcId: 'vpc-0123456789abcdef0' })
  })

  it('needs no credentials at synthesis, even where account and region are known', () => {
    const app = temporaryApp()
    const config = parseStackConfig({ ...exampleConfig(), cluster: { create: {}, database: 'orders' } })
    const env = { account: '111122223333', region: 'eu-central-1' }
    new OutboxRelayStack(app, 'outbox-relay-orders', { config, env })
    expect(app.synth().manifest.missing).toBeUndefined()
  })
})
