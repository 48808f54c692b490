import { describe, expect, it } from 'vitest'
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
    'a schema in capitals',
    { cluster: { ...cluster, schema: 'Orders' } },
    'cluster.schema must be a plain lower-case PostgreSQL schema name. Seen: "Orders"',
  ],
  [
    'a property that is not there',
    { retention: 7 },
    'retention is not a property here. Remove it; docs/deploy.md lists those there are',
  ],
  [
    'a misspelt property inside',
    { cluster: { ...cluster, databse: 'orders' } },
    'cluster.databse is not a property here. Remove it; docs/deploy.md lists those there are',
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
    'relay.batchSize is not a property here. Remove it; docs/deploy.md lists those there are',
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
    { profile: 'drain' },
    'alarms.backlogAgeSeconds is 60, not longer than the tick of 600 s: events wait that long in profile "drain" when all is well. Set it above 600',
  ],
  [
    'an address beside a topic',
    { alarms: { email: 'on-call@example.com', topicArn: 'arn:aws:sns:eu-central-1:111122223333:on-call' } },
    'alarms.email is "on-call@example.com", but alarms go to a topic of yours. Remove alarms.email and subscribe the address to that topic',
  ],
  ['no address', { alarms: { email: 'on-call' } }, 'alarms.email must be a valid email. Seen: "on-call"'],
  [
    'a retention that CloudWatch does not know',
    { logRetentionDays: 10 },
    'logRetentionDays must be one of 1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731. Seen: 10',
  ],
  ['negative retention', { retentionDays: -1 }, 'retentionDays must be at least 0. Seen: -1'],
  ['failed events kept for a minute', { failedRetentionDays: 0.001 }, 'failedRetentionDays must be at least 1. Seen: 0.001'],
]

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
