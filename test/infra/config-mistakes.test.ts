import { describe, expect, it } from 'vitest'
import { parseStackConfig } from '../../lib/stack-config.js'
import { exampleConfig, exampleStack } from './synthesis.js'

const cluster = exampleConfig().cluster as Readonly<Record<string, unknown>>
const destinations = exampleConfig().destinations as Readonly<Record<string, unknown>>

/** What somebody wrote over the example's top level, and the whole message they get. */
const mistakes: readonly (readonly [mistake: string, changes: Readonly<Record<string, unknown>>, message: string])[] = [
  ['no installation', { installation: undefined }, 'installation is missing. It must be a string'],
  [
    'a name with a space',
    { installation: 'my orders' },
    'installation must be 1 to 63 letters, digits, "-" or "_". Seen: "my orders"',
  ],
  [
    'the ARN of an instance for the cluster',
    { cluster: { ...cluster, clusterArn: 'arn:aws:rds:eu-central-1:111122223333:db:orders' } },
    'cluster.clusterArn must be the ARN of an Aurora cluster (arn:aws:rds:<region>:<account>:cluster:<name>). Seen: "arn:aws:rds:eu-central-1:111122223333:db:orders"',
  ],
  [
    'a secret without its suffix',
    { cluster: { ...cluster, secretArn: 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders' } },
    'cluster.secretArn must be the ARN of a secret, complete with its six-character suffix (arn:aws:secretsmanager:<region>:<account>:secret:<name>-AbCdEf). Seen: "arn:aws:secretsmanager:eu-central-1:111122223333:secret:orders"',
  ],
  ['no database', { cluster: { ...cluster, database: undefined } }, 'cluster.database is missing. It must be a string'],
  [
    'neither a cluster nor the wish for one',
    { cluster: { database: 'orders' } },
    'cluster needs clusterArn (of one that is there) or create (for a new one). Add one of them',
  ],
  [
    'a cluster and the wish for another',
    { cluster: { ...cluster, create: {} } },
    'cluster has both clusterArn (of one that is there) and create (for a new one). Remove one of them',
  ],
  [
    'a cluster without its secret',
    { cluster: { ...cluster, secretArn: undefined } },
    'cluster.secretArn is missing. An existing cluster needs it: the ARN of the secret to reach it with',
  ],
  [
    'a secret for a cluster that is not there yet',
    { cluster: { create: {}, secretArn: cluster.secretArn, database: 'orders' } },
    'cluster.secretArn is of an existing cluster, but cluster.create makes a new one, whose secret RDS keeps. Remove it',
  ],
  [
    'a name that RDS gives to no database',
    { cluster: { create: {}, database: 'web-shop' } },
    'cluster.database is "web-shop", but RDS makes a database of 1 to 63 letters, digits or "_", beginning with a letter. Rename it',
  ],
  [
    'a cluster that could pause, beside a relay that never lets it',
    { cluster: { create: { minCapacity: 0 }, database: 'orders' } },
    'cluster.create.minCapacity is 0, so that the cluster can pause, but profile "continuous" never stops asking it for events. Set profile to "drain", or cluster.create.minCapacity to 0.5',
  ],
  [
    'a quarter of a capacity unit',
    { cluster: { create: { minCapacity: 0.25 }, database: 'orders' } },
    'cluster.create.minCapacity must be a multiple of 0.5. Seen: 0.25',
  ],
  [
    'a least above the most',
    { cluster: { create: { minCapacity: 8 }, database: 'orders' } },
    'cluster.create.minCapacity is 8, more than cluster.create.maxCapacity (4). Set it to 4 or less',
  ],
  [
    'a most below what Aurora takes',
    { cluster: { create: { minCapacity: 0.5, maxCapacity: 0.5 }, database: 'orders' } },
    'cluster.create.maxCapacity must be at least 1. Seen: 0.5',
  ],
  [
    'a PostgreSQL without the Data API',
    { cluster: { create: { engineVersion: '12.9' }, database: 'orders' } },
    'cluster.create.engineVersion must be a version of Aurora PostgreSQL that has the Data API and can pause: 13.15, 14.12, 15.7, 16.3, 17.4, 18.3, or a later minor version of one of these. Seen: "12.9"',
  ],
  [
    'a minor version that is too old',
    { cluster: { create: { engineVersion: '17.2' }, database: 'orders' } },
    'cluster.create.engineVersion must be a version of Aurora PostgreSQL that has the Data API and can pause: 13.15, 14.12, 15.7, 16.3, 17.4, 18.3, or a later minor version of one of these. Seen: "17.2"',
  ],
  [
    'protection as a boolean',
    { cluster: { create: { deletionProtection: true }, database: 'orders' } },
    'cluster.create.deletionProtection must be one of "on", "off". Seen: true',
  ],
  [
    'a single subnet',
    {
      cluster: {
        create: { network: { vpcId: 'vpc-0123456789abcdef0', subnetIds: ['subnet-0123456789abcdef0'] } },
        database: 'orders',
      },
    },
    'cluster.create.network.subnetIds must name at least 2 subnets. Seen: ["subnet-0123456789abcdef0"]',
  ],
  [
    'a VPC without its subnets',
    { cluster: { create: { network: { vpcId: 'vpc-0123456789abcdef0' } }, database: 'orders' } },
    'cluster.create.network.subnetIds is missing. It must be an array',
  ],
  [
    'the name of a VPC for its id',
    { cluster: { create: { network: { vpcId: 'main', subnetIds: [] } }, database: 'orders' } },
    'cluster.create.network.vpcId must be the id of a VPC (vpc-...). Seen: "main"',
  ],
  [
    'a schema in capitals',
    { cluster: { ...cluster, schema: 'Orders' } },
    'cluster.schema must be a plain lower-case PostgreSQL schema name. Seen: "Orders"',
  ],
  [
    'a property that is not there',
    { retention: 7 },
    'retention is not a property here. Remove it; docs/configuration.md lists those there are',
  ],
  [
    'a misspelt property inside',
    { cluster: { ...cluster, databse: 'orders' } },
    'cluster.databse is not a property here. Remove it; docs/configuration.md lists those there are',
  ],
  [
    'a source of AWS',
    { source: 'aws.orders' },
    'source must not begin with "aws.", which EventBridge keeps for itself. Seen: "aws.orders"',
  ],
  [
    'no destination',
    { destinations: {}, routes: [], default: undefined },
    'destinations must name at least one destination. Seen: {}',
  ],
  [
    'an unknown kind of destination',
    { destinations: { ...destinations, stream: { type: 'kinesis', streamArn: 'arn' } } },
    'destinations.stream.type must be one of "eventbridge", "sqs", "sns". Seen: "kinesis"',
  ],
  [
    'the URL of a queue for its ARN',
    {
      destinations: {
        ...destinations,
        billing: { type: 'sqs', queueArn: 'https://sqs.eu-central-1.amazonaws.com/111122223333/billing' },
      },
    },
    'destinations.billing.queueArn must be the ARN of an SQS queue (arn:aws:sqs:<region>:<account>:<name>). Seen: "https://sqs.eu-central-1.amazonaws.com/111122223333/billing"',
  ],
  [
    'a bus of the other EventBridge',
    {
      destinations: {
        bus: { type: 'eventbridge', eventBusArn: 'arn:aws:events:eu-central-1:111122223333:event-busv2/orders/abc' },
      },
      routes: [],
    },
    'destinations.bus.eventBusArn must be the ARN of an EventBridge bus (arn:aws:events:<region>:<account>:event-bus/<name>). Seen: "arn:aws:events:eu-central-1:111122223333:event-busv2/orders/abc"',
  ],
  [
    'a destination with a dot in its name',
    { destinations: { ...destinations, 'billing.eu': destinations.billing } },
    'destinations["billing.eu"]: its name must be 1 to 64 letters, digits, "-" or "_", beginning with a letter or digit',
  ],
  [
    'a queue of another region',
    { destinations: { ...destinations, billing: { type: 'sqs', queueArn: 'arn:aws:sqs:us-east-1:111122223333:billing' } } },
    'destinations.billing is arn:aws:sqs:us-east-1:111122223333:billing, in us-east-1, but the cluster and the relay are in eu-central-1. Name one in eu-central-1; an EventBridge rule can forward to another region',
  ],
  [
    'a destination that neither is there nor is to be made',
    { destinations: { bus: { type: 'eventbridge' } }, routes: [] },
    'destinations.bus needs eventBusArn (of one that is there) or create (for a new one). Add one of them',
  ],
  [
    'a topic that is there and is to be made',
    {
      destinations: { bus: { type: 'sns', topicArn: 'arn:aws:sns:eu-central-1:111122223333:news', create: {} } },
      routes: [],
    },
    'destinations.bus has both topicArn (of one that is there) and create (for a new one). Remove one of them',
  ],
  [
    'a key for a queue that gets keys of SQS',
    {
      destinations: { bus: { type: 'sqs', create: {}, keyArn: 'arn:aws:kms:eu-central-1:111122223333:key/orders' } },
      routes: [],
    },
    'destinations.bus.keyArn is of an existing one, but destinations.bus.create makes a new one. Remove it',
  ],
  [
    'a queue that is half FIFO',
    { destinations: { bus: { type: 'sqs', create: { fifo: true } } }, routes: [] },
    'destinations.bus.create.fifo is not a property here. Remove it; docs/configuration.md lists those there are',
  ],
  [
    'a queue that forgets a message before it is received',
    { destinations: { bus: { type: 'sqs', create: { maxReceiveCount: 0 } } }, routes: [] },
    'destinations.bus.create.maxReceiveCount must be at least 1. Seen: 0',
  ],
  [
    'two new queues whose outputs would have one name',
    { destinations: { 'bus-1': { type: 'sqs', create: {} }, bus_1: { type: 'sqs', create: {} } }, routes: [], default: 'bus-1' },
    'destinations.bus_1 would have the output DestinationBus1Arn, as destinations.bus-1 has: CloudFormation takes letters and digits alone. Rename one of them',
  ],
  [
    'more bytes than a request may have',
    {
      destinations: {
        ...destinations,
        billing: { type: 'sqs', queueArn: 'arn:aws:sqs:eu-central-1:111122223333:billing', maxBytes: 2_000_000 },
      },
    },
    'destinations.billing.maxBytes must be at most 1048576. Seen: 2000000',
  ],
  [
    'a route to nowhere',
    { routes: [{ eventType: 'Order*', to: 'orders' }] },
    'routes[0].to is "orders", which is not a destination. Configured are: bus, billing, shipping. Add it or correct the name',
  ],
  [
    'a default to nowhere',
    { default: 'main' },
    'default is "main", which is not a destination. Configured are: bus, billing, shipping. Add it or correct the name',
  ],
  [
    'an unknown policy on a route',
    { routes: [{ eventType: 'Order*', to: 'bus', onFailure: 'ignore' }] },
    'routes[0].onFailure must be one of "block", "skip". Seen: "ignore"',
  ],
  ['an unknown profile', { profile: 'fast' }, 'profile must be one of "continuous", "drain". Seen: "fast"'],
  [
    'a pass that leaves a seam before the next',
    { relay: { passSeconds: 55 } },
    'relay.passSeconds is 55, not longer than the tick of 60 s: between two passes nobody would relay. Set it to 75 or shorten tickMinutes',
  ],
  [
    'a tick longer than the pass',
    { tickMinutes: 5 },
    'relay.passSeconds is 75, not longer than the tick of 300 s: between two passes nobody would relay. Set it to 315 or shorten tickMinutes',
  ],
  ['a pass longer than Lambda allows', { relay: { passSeconds: 900 } }, 'relay.passSeconds must be at most 840. Seen: 900 (s)'],
  ['half a row', { relay: { claimRows: 0.5 } }, 'relay.claimRows must be an integer. Seen: 0.5 (rows)'],
  [
    'a number that is not there',
    { relay: { batchSize: 10 } },
    'relay.batchSize is not a property here. Remove it; docs/configuration.md lists those there are',
  ],
  ['a number as text', { relay: { claimRows: '100' } }, 'relay.claimRows must be a number. Seen: "100"'],
  [
    'a lease longer than the pass',
    { relay: { leaseSeconds: 75 } },
    'relay.leaseSeconds is 75, not shorter than relay.passSeconds (75): a crashed pass would block its shards for longer than a pass lasts. Set it below 75',
  ],
  [
    'a request that outlives its lease',
    { relay: { leaseSeconds: 20, requestTimeoutMs: 20_000 } },
    'relay.requestTimeoutMs is 20000, not shorter than relay.leaseSeconds (20): a request could outlive its lease. Set it below 20000',
  ],
  [
    'a first retry after the last',
    { relay: { retryBaseMs: 5000, retryCapMs: 1000 } },
    'relay.retryBaseMs is 5000, more than relay.retryCapMs (1000). Set it to 1000 or less',
  ],
  [
    'a drain that never lets the cluster pause',
    { profile: 'drain', tickMinutes: 1 },
    'tickMinutes is 1, but profile "drain" takes one of 10, 12, 15, 20, 30, 60. Set it to one of them',
  ],
  [
    'an alarm that a drain sets off when all is well',
    { profile: 'drain', alarms: { backlogAgeSeconds: 659 } },
    'alarms.backlogAgeSeconds is 659, not a minute longer than the tick of 600 s: events wait for the tick, and for the cluster to resume, in profile "drain" when all is well. Set it to 660 or more',
  ],
  [
    'an address beside a topic',
    { alarms: { email: 'on-call@example.com', topicArn: 'arn:aws:sns:eu-central-1:111122223333:on-call' } },
    'alarms.email is "on-call@example.com", but alarms go to a topic of yours. Remove alarms.email and subscribe the address to that topic',
  ],
  ['more relays than there are', { relays: 9 }, 'relays must be at most 8. Seen: 9'],
  [
    'less concurrency than overlapping passes need',
    { reservedConcurrency: 1 },
    'reservedConcurrency is 1, but the relay of up to 90 s every 60 s may need 2 at once: the others would be refused, and nobody would relay meanwhile. Set it to 2 or more, or leave it out',
  ],
  [
    'a schema where its keeper belongs',
    { schema: 'billing' },
    'schema must be one of "managed", "managed-elsewhere". Seen: "billing"',
  ],
  [
    'a secret that the Data API of the cluster cannot read',
    {
      cluster: {
        clusterArn: 'arn:aws:rds:eu-central-1:111122223333:cluster:orders',
        secretArn: 'arn:aws:secretsmanager:us-east-1:111122223333:secret:orders-outbox-a1B2c3',
        database: 'orders',
      },
    },
    'cluster.secretArn is in us-east-1 (arn:aws:secretsmanager:us-east-1:111122223333:secret:orders-outbox-a1B2c3), but the cluster, and with it the stack, is in eu-central-1. Name one in eu-central-1',
  ],
  [
    'a topic that the alarms of the region cannot reach',
    { alarms: { topicArn: 'arn:aws:sns:us-east-1:111122223333:on-call' } },
    'alarms.topicArn is in us-east-1 (arn:aws:sns:us-east-1:111122223333:on-call), but the cluster, and with it the stack, is in eu-central-1. Name one in eu-central-1',
  ],
  [
    'a key that does not seal a queue of the region',
    {
      destinations: {
        bus: {
          type: 'sqs',
          queueArn: 'arn:aws:sqs:eu-central-1:111122223333:billing',
          keyArn: 'arn:aws:kms:us-east-1:111122223333:key/orders',
        },
      },
      routes: [],
    },
    'destinations.bus.keyArn is in us-east-1 (arn:aws:kms:us-east-1:111122223333:key/orders), but the cluster, and with it the stack, is in eu-central-1. Name one in eu-central-1',
  ],
  [
    'passwords that nobody would rotate',
    { schema: 'managed-elsewhere', passwordRotationDays: 7 },
    'passwordRotationDays is 7, but passwords are rotated by the migrate function, which a schema that is managed elsewhere leaves out. Remove it, or let the deployment manage the schema',
  ],
  [
    'a take-over where nothing migrates',
    { schema: 'managed-elsewhere', takeOverFrom: 'shop' },
    'takeOverFrom is "shop", but the schema is managed elsewhere. Remove it, and run aurora-outbox-relay migrate --installation orders --take-over-from shop',
  ],
  [
    'a role for a permissions boundary',
    { permissionsBoundaryArn: 'arn:aws:iam::111122223333:role/developers' },
    'permissionsBoundaryArn must be the ARN of an IAM policy (arn:aws:iam::<account>:policy/<name>). Seen: "arn:aws:iam::111122223333:role/developers"',
  ],
  ['a number for a tag', { tags: { 'cost-centre': 42 } }, 'tags["cost-centre"] must be a string. Seen: 42'],
  [
    'a tag that AWS keeps for itself',
    { tags: { 'aws:owner': 'shop' } },
    'tags["aws:owner"]: its name must be 1 to 128 letters, digits, spaces or any of "_.:/=+-@", not beginning with "aws:"',
  ],
  ['an unknown switch of the canary', { canary: true }, 'canary must be one of "on", "off". Seen: true'],
  ['a canary once in a blue moon', { canaryMinutes: 90 }, 'canaryMinutes must be at most 60. Seen: 90'],
  ['a threshold as text', { alarms: { leaseLost: '3' } }, 'alarms.leaseLost must be a number. Seen: "3"'],
  [
    'a topic of another service for alarms',
    { alarms: { topicArn: 'arn:aws:sqs:eu-central-1:111122223333:on-call' } },
    'alarms.topicArn must be the ARN of an SNS topic (arn:aws:sns:<region>:<account>:<name>). Seen: "arn:aws:sqs:eu-central-1:111122223333:on-call"',
  ],
  ['no runbook', { alarms: { runbookUrl: 'wiki' } }, 'alarms.runbookUrl must be a valid url. Seen: "wiki"'],
  ['no address', { alarms: { email: 'on-call' } }, 'alarms.email must be a valid email. Seen: "on-call"'],
  [
    'a retention that CloudWatch does not know',
    { logRetentionDays: 10 },
    'logRetentionDays must be one of 1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731. Seen: 10',
  ],
  ['negative retention', { retentionDays: -1 }, 'retentionDays must be at least 0.001. Seen: -1'],
  ['failed events kept for a minute', { failedRetentionDays: 0.001 }, 'failedRetentionDays must be at least 1. Seen: 0.001'],
]

describe('a configuration that is no object at all', () => {
  it.each([
    ['a list', [], 'config must be an object. Seen: []'],
    ['nothing', null, 'config must be an object. Seen: null'],
  ])('%s', (_what, value, message) => {
    expect(() => parseStackConfig(value)).toThrow(message)
  })
})

describe('a wrong configuration is refused in one line', () => {
  it.each(mistakes)('%s', (_mistake, changes, message) => {
    let refusal: unknown
    try {
      exampleStack(changes)
    } catch (error) {
      refusal = error
    }
    expect(refusal).toMatchObject({ name: 'ConfigurationError', message })
  })
})
