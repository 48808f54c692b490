import { z } from 'zod'
import { destinationName, routesSchema } from '../src/config/destinations.js'
import { databaseSettings, relaySettings } from '../src/config/settings.js'
import { tuningNames } from './relay-tuning.js'
import { clusterDefaults, queueDefaults } from './stack-config-defaults.js'

/** What docs/configuration.md says of a property, besides its name and what its parser takes. */
export interface PropertyDoc {
  readonly doc: string
  /** What holds without it; `required`: there is no such thing. */
  readonly otherwise: string
  /** What it may be, where its parser cannot say. */
  readonly value?: string
}

/** A property with its line in docs/configuration.md. */
function property<S extends z.ZodType>(schema: S, doc: string, otherwise: 'required'): S
function property<S extends z.ZodType>(schema: S, doc: string, otherwise: string, value?: string): z.ZodOptional<S>
function property(schema: z.ZodType, doc: string, otherwise: string, value?: string): z.ZodType {
  const said: PropertyDoc & Record<string, unknown> = { doc, otherwise, ...(value === undefined ? {} : { value }) }
  return (otherwise === 'required' ? schema : schema.optional()).meta(said)
}

const arn = (pattern: RegExp, shape: string) => z.string().regex(pattern, `must be the ARN of ${shape}`)

const keyArn = arn(/^arn:[^:]+:kms:[^:]+:\d{12}:key\/.+$/, 'a KMS key (arn:aws:kms:<region>:<account>:key/<id>)')
const topicArn = arn(/^arn:[^:]+:sns:[^:]+:\d{12}:[A-Za-z0-9_.-]+$/, 'an SNS topic (arn:aws:sns:<region>:<account>:<name>)')

// ---- the cluster

/** Aurora counts capacity in halves. */
const capacity = (min: number) =>
  z
    .number()
    .min(min)
    .max(256)
    .refine((units) => Number.isInteger(units * 2), 'must be a multiple of 0.5')

/** The oldest minor version of each major one that has the Data API and can pause. */
const oldestMinor: Readonly<Record<string, number>> = { 13: 15, 14: 12, 15: 7, 16: 3, 17: 4, 18: 3 }
const engineVersion = z.string().refine(
  (version) => {
    const [, major = '', minor = ''] = /^(\d+)\.(\d+)$/.exec(version) ?? []
    return Number(minor) >= (oldestMinor[major] ?? Infinity)
  },
  `must be a version of Aurora PostgreSQL that has the Data API and can pause: ${Object.entries(oldestMinor)
    .map(([major, minor]) => `${major}.${minor}`)
    .join(', ')}, or a later minor version of one of these`,
)

const id = (kind: string) =>
  z.string().regex(new RegExp(`^${kind}-[0-9a-f]{8,17}$`), `must be the id of a ${kind === 'vpc' ? 'VPC' : kind} (${kind}-...)`)

const createdCluster = z.strictObject({
  minCapacity: property(
    capacity(0),
    'the least the cluster runs with, in ACU. With 0 it pauses after 5 minutes without a connection, which only profile `drain` gives it',
    String(clusterDefaults.minCapacity),
    '0 to 256, in halves',
  ),
  maxCapacity: property(capacity(1), 'the most it scales to, in ACU', String(clusterDefaults.maxCapacity), '1 to 256, in halves'),
  engineVersion: property(
    engineVersion,
    'version of Aurora PostgreSQL. Another value upgrades the cluster',
    clusterDefaults.engineVersion,
  ),
  deletionProtection: property(
    z.enum(['on', 'off']),
    'whether the cluster, and the stack with it, refuses to be deleted. When it is off and the stack is removed, a last snapshot stays',
    clusterDefaults.deletionProtection,
  ),
  backupRetentionDays: property(
    z.number().int().min(1).max(35),
    'how long automated backups are kept',
    String(clusterDefaults.backupRetentionDays),
  ),
  keyArn: property(
    keyArn,
    'the KMS key that seals storage and master secret. It cannot be changed later',
    "the account's own keys",
  ),
  network: property(
    z.strictObject({
      vpcId: property(id('vpc'), 'a VPC of yours', 'required'),
      subnetIds: property(
        z.array(id('subnet')).min(2, 'must name at least 2 subnets'),
        'its subnets for the cluster, in two availability zones at least; no route to the internet is needed',
        'required',
      ),
    }),
    'where the cluster stands',
    'a new VPC, without a gateway or a route to anywhere',
  ),
})

const clusterSchema = z.strictObject({
  clusterArn: property(
    arn(/^arn:[^:]+:rds:[^:]+:\d{12}:cluster:.+$/, 'an Aurora cluster (arn:aws:rds:<region>:<account>:cluster:<name>)'),
    'an existing cluster, with its Data API on; the stack goes to its account and region',
    'given, unless there is `create`',
  ),
  secretArn: property(
    arn(
      /^arn:[^:]+:secretsmanager:[^:]+:\d{12}:secret:.+-[A-Za-z0-9]{6}$/,
      'a secret, complete with its six-character suffix (arn:aws:secretsmanager:<region>:<account>:secret:<name>-AbCdEf)',
    ),
    'its secret: name and password of a database user who may create the tables and roles of the outbox',
    'given, unless there is `create`',
  ),
  secretKeyArn: property(keyArn, 'the key of that secret, where it is a customer-managed one', "the account's own key"),
  create: property(
    createdCluster,
    'a new cluster: Aurora PostgreSQL Serverless v2, reached through the Data API alone. `{}` takes every default; RDS keeps and rotates its master secret',
    'given, unless there is `clusterArn`',
  ),
  database: property(databaseSettings.database.parse, databaseSettings.database.doc, 'required'),
  schema: property(databaseSettings.schema.parse, 'the schema of the outbox tables; each schema can hold one outbox', 'public'),
})

// ---- destinations

const delivery = {
  format: property(
    z.enum(['cloudevents', 'raw']),
    '`cloudevents`: a CloudEvents 1.0 object around the payload; `raw`: the payload alone',
    'cloudevents',
  ),
  /** 1,048,576: the largest request of SQS and SNS. */
  maxBytes: property(
    z.number().int().min(1024).max(1_048_576),
    'bytes that one request may carry',
    'what the queue, topic or EventBridge itself allows',
  ),
}

const order = property(z.enum(['standard', 'fifo']), '`fifo` keeps the order of the events of an ordering key', 'standard')
const destinationKeyArn = property(keyArn, 'its key, where it is a customer-managed one', 'none')
const given = 'given, unless there is `create`'

const destinationSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: property(z.literal('eventbridge'), 'a bus of EventBridge', 'required'),
    eventBusArn: property(
      // not `event-busv2`: that is another service, whose API the relay does not speak
      arn(
        /^arn:[^:]+:events:[^:]+:\d{12}:event-bus\/[A-Za-z0-9_./-]+$/,
        'an EventBridge bus (arn:aws:events:<region>:<account>:event-bus/<name>)',
      ),
      'an existing bus',
      given,
    ),
    create: property(
      z.strictObject({}),
      'a new bus, sealed with a key of EventBridge, for this account alone: `{}`',
      'given, unless there is `eventBusArn`',
    ),
    ...delivery,
  }),
  z.strictObject({
    type: property(z.literal('sqs'), 'a queue, standard or FIFO', 'required'),
    queueArn: property(
      arn(/^arn:[^:]+:sqs:[^:]+:\d{12}:[A-Za-z0-9_.-]+$/, 'an SQS queue (arn:aws:sqs:<region>:<account>:<name>)'),
      'an existing queue',
      given,
    ),
    keyArn: destinationKeyArn,
    create: property(
      z.strictObject({
        order,
        maxReceiveCount: property(
          z.number().int().min(1).max(1000),
          'receptions after which a message goes to the dead-letter queue',
          String(queueDefaults.maxReceiveCount),
        ),
        visibilityTimeoutSeconds: property(
          z.number().int().min(0).max(43_200),
          'how long a received message stays hidden; at least six times the timeout of a Lambda function that consumes it',
          String(queueDefaults.visibilityTimeoutSeconds),
        ),
        retentionDays: property(
          z.number().int().min(1).max(14),
          'how long a message waits for its consumer',
          String(queueDefaults.retentionDays),
        ),
      }),
      'a new queue with a dead-letter queue, sealed with keys of SQS, by TLS alone. Both stay when the stack is removed',
      'given, unless there is `queueArn`',
    ),
    ...delivery,
  }),
  z.strictObject({
    type: property(z.literal('sns'), 'a topic, standard or FIFO', 'required'),
    topicArn: property(topicArn, 'an existing topic', given),
    keyArn: destinationKeyArn,
    create: property(
      z.strictObject({ order }),
      'a new topic, sealed with a key of its own, by TLS alone',
      'given, unless there is `topicArn`',
    ),
    ...delivery,
  }),
])

// ---- the whole

/** Retentions in days that CloudWatch Logs knows, as far as they make sense here. */
const logRetentionDays = z.literal([1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731])

const days = (min: number) => z.number().min(min).max(3650)
const count = z.number().int().min(0).max(1_000_000)

const tags = z
  .record(
    z
      .string()
      .regex(
        /^(?!aws:)[\p{L}\p{N} _.:/=+@-]{1,128}$/u,
        'must be 1 to 128 letters, digits, spaces or any of "_.:/=+-@", not beginning with "aws:"',
      ),
    z.string().regex(/^[\p{L}\p{N} _.:/=+@-]{0,256}$/u, 'must be at most 256 letters, digits, spaces or any of "_.:/=+-@"'),
  )
  .refine((all) => Object.keys(all).length <= 50, 'must be at most 50 tags')

/** What `cdk.json` or the file given by `-c config=FILE` may say: one installation. */
export const stackConfigSchema = z.strictObject({
  installation: property(
    databaseSettings.installation.parse,
    'name of the installation: part of the names of the stack and of its database users (so at most 53 characters), and the `service` of its metrics and logs. A second one on the same outbox is refused',
    'required',
  ),
  takeOverFrom: property(
    databaseSettings.installation.parse,
    'the installation that the next deployment takes the outbox over from (deploy.md); remove it afterwards. Only where the deployment manages the schema',
    'an outbox of another installation is refused',
  ),
  cluster: property(clusterSchema, 'where the outbox is: an existing cluster, or a new one', 'required'),
  schema: property(
    z.enum(['managed', 'managed-elsewhere']),
    '`managed`: each deployment brings the schema up to date first. `managed-elsewhere`: nothing in the stack does; run `npx aurora-outbox-relay migrate` (the first time its plain SQL will do too) before each deployment, and once more with `--user-secret` after the first, which makes the secrets (deploy.md)',
    'managed',
  ),
  source: property(relaySettings.source.parse, 'CloudEvents `source` of every message', 'outbox-relay'),
  destinations: property(
    z
      .record(destinationName, destinationSchema)
      .refine((destinations) => Object.keys(destinations).length > 0, 'must name at least one destination'),
    'name -> where events go; existing ones in the region of the cluster',
    'required',
  ),
  routes: property(
    routesSchema,
    'list of `{"eventType": glob, "to": destination, "onFailure": "block" or "skip"}`; the first match decides',
    'none',
  ),
  default: property(destinationName, 'the destination of events that no route matches', 'they wait, and an alarm says so'),
  profile: property(
    z.enum(['continuous', 'drain']),
    '`continuous` relays without a pause and keeps the cluster awake; `drain` empties the outbox at each tick, so that a cluster with a minimum capacity of 0 can pause in between',
    'continuous',
  ),
  tickMinutes: property(
    z.number().int().min(1).max(60),
    'minutes between two passes. In `continuous` less than `relay.passSeconds`; in `drain` one of 10, 12, 15, 20, 30, 60',
    '1; in `drain` 10',
  ),
  relays: property(z.number().int().min(1).max(8), 'relays that work in parallel, each on other shards of the outbox', '1'),
  reservedConcurrency: property(
    z.number().int().min(1).max(1000),
    'concurrency that is kept free for the relay, and the most it gets; at least what overlapping passes need (2 per relay, by default)',
    "the account's unreserved concurrency",
  ),
  relay: property(
    z.partialRecord(z.enum(tuningNames), z.number()),
    "the relay's numbers, by their names in the table of the relay below",
    'as that table says',
  ),
  relayMemoryMiB: property(
    z.number().int().min(128).max(10_240),
    "the relay's memory, and with it its share of a processor",
    '512',
  ),
  retentionDays: property(days(0.001), 'how long delivered and discarded events are kept', '7'),
  failedRetentionDays: property(days(1), 'how long failed events are kept before they are discarded', 'for ever'),
  passwordRotationDays: property(
    z.number().int().min(0).max(1000),
    "how often each function's database user gets a new password, which the function never notices; 0: whenever somebody asks for it",
    '30',
  ),
  userSecretsKeyArn: property(keyArn, "the KMS key that seals those users' secrets", "the account's own key"),
  logRetentionDays: property(logRetentionDays, "how long the functions' logs are kept", '30'),
  tracing: property(z.enum(['on', 'off']), "whether X-Ray traces the functions' invocations", 'off'),
  canary: property(
    z.enum(['on', 'off']),
    "whether test events go through the outbox to each bus of the stack's account, and back by a rule: the proof that events arrive",
    'on',
  ),
  canaryMinutes: property(
    z.number().int().min(1).max(60),
    'minutes between two test events; only in `continuous`, since in `drain` they share the tick',
    '5',
  ),
  alarms: property(
    z.strictObject({
      backlogAgeSeconds: property(
        z.number().int().min(1).max(604_800),
        'an alarm goes off when the oldest due event has waited longer than this, in 3 of 5 measurements',
        '60; in `drain` twice the tick',
      ),
      relayErrors: property(
        count,
        'an alarm goes off when more invocations of the relay than this fail within a tick, in 3 of 5 ticks',
        '0',
      ),
      leaseLost: property(
        count,
        'an alarm goes off when relays lose more shards than this to each other within a tick, in 3 of 5 ticks',
        '0',
      ),
      dataApiErrors: property(
        count,
        'an alarm goes off when more calls of the Data API than this fail within a tick, in 3 of 5 ticks',
        '0',
      ),
      email: property(z.email(), 'an address that the new topic mails to', 'nobody'),
      runbookUrl: property(
        z.url(),
        'where your team reads the runbook: each alarm and the dashboard send there',
        '`docs/runbook.md`, its path in the package',
      ),
      topicArn: property(
        topicArn,
        'an existing topic for alarms. If it is encrypted, its key must let `cloudwatch.amazonaws.com` use it, which the AWS-managed key of SNS does not',
        'a new topic with its own key',
      ),
    }),
    'when somebody is called, and who',
    'the defaults of its properties',
  ),
  permissionsBoundaryArn: property(
    arn(/^arn:[^:]+:iam::(\d{12}|aws):policy\/.+$/, 'an IAM policy (arn:aws:iam::<account>:policy/<name>)'),
    'the permissions boundary of every role of the stack',
    'none',
  ),
  tags: property(tags, 'name -> value: tags of every resource that can have some', 'none'),
})

export type StackConfig = z.infer<typeof stackConfigSchema>
