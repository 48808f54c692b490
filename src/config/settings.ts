import { z } from 'zod'
import { userRoles, type UserRole } from '../core/database-user.js'
import type { Destinations } from '../core/destination.js'
import type { Route } from '../core/route.js'
import { destinationName, destinationsSchema, routesSchema } from './destinations.js'
import type { Setting } from './setting.js'

const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d{1,12}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.number().int().min(min).max(max))

const json = <Value>(schema: z.ZodType<Value>) =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text)
      } catch {
        context.addIssue({ code: 'custom', message: 'must be JSON' })
        return z.NEVER
      }
    })
    .pipe(schema) as z.ZodType<Value, string>

const secretArn = z.string().regex(/^arn:[^:]*:secretsmanager:.+$/, 'must be the complete ARN of a Secrets Manager secret')

const setting = <Value>(definition: Setting<Value>): Setting<Value> => definition

/** Where the outbox is. Every handler has these. */
export const databaseSettings = {
  resourceArn: setting({
    env: 'OUTBOX_CLUSTER_ARN',
    parse: z
      .string()
      .regex(
        /^arn:[^:]*:rds:[^:]*:[^:]*:cluster:.+$/,
        'must be the ARN of an Aurora cluster (arn:aws:rds:<region>:<account>:cluster:<name>)',
      ),
    default: undefined,
    unit: '',
    doc: 'the ARN of the Aurora cluster that holds the outbox; its Data API must be on',
  }),
  secretArn: setting({
    env: 'OUTBOX_SECRET_ARN',
    parse: secretArn,
    default: undefined,
    unit: '',
    doc: "the ARN of the secret with the database user's name and password",
  }),
  database: setting({
    env: 'OUTBOX_DATABASE',
    parse: z.string().min(1).max(64),
    default: undefined,
    unit: '',
    doc: 'the name of the database that holds the outbox',
  }),
  schema: setting({
    env: 'OUTBOX_SCHEMA',
    parse: z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'must be a plain lower-case PostgreSQL schema name'),
    default: 'public',
    unit: '',
    doc: 'the schema of the outbox tables; the default is public',
  }),
  installation: setting({
    env: 'OUTBOX_INSTALLATION',
    parse: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/, 'must be 1 to 63 letters, digits, "-" or "_"'),
    default: undefined,
    unit: '',
    doc: 'the name of the installation (the stack) that serves this outbox; a second one on the same outbox is refused',
  }),
} as const

/** The relay's own. */
export const relaySettings = {
  ...databaseSettings,
  source: setting({
    env: 'OUTBOX_SOURCE',
    parse: z
      .string()
      .min(1)
      .max(256)
      .refine((source) => !source.startsWith('aws.'), 'must not begin with "aws.", which EventBridge keeps for itself'),
    default: 'outbox-relay',
    unit: '',
    doc: 'the CloudEvents source (EventBridge: Source) of every message; the default is outbox-relay',
  }),
  destinations: setting<Destinations>({
    env: 'OUTBOX_DESTINATIONS',
    parse: json(destinationsSchema),
    default: undefined,
    unit: 'JSON',
    doc: 'destination name -> {"type":"eventbridge","eventBusName"} | {"type":"sqs","queueUrl"} | {"type":"sns","topicArn"}',
  }),
  routes: setting<readonly Route[]>({
    env: 'OUTBOX_ROUTES',
    parse: json(routesSchema),
    default: [],
    unit: 'JSON',
    doc: 'list of {"eventType": glob, "to": destination, "onFailure": "block"|"skip"}; the first match decides',
  }),
  defaultDestination: setting<string | null>({
    env: 'OUTBOX_DEFAULT_DESTINATION',
    parse: destinationName,
    default: null,
    unit: '',
    doc: 'where events go that no route matches; without it they wait, and an alarm says so',
  }),
  profile: setting<'continuous' | 'drain'>({
    env: 'OUTBOX_PROFILE',
    parse: z.enum(['continuous', 'drain']),
    default: 'continuous',
    unit: '',
    doc: 'continuous polls until the pass budget is spent; drain returns when nothing is due',
  }),
  passSeconds: setting({
    env: 'OUTBOX_PASS_SECONDS',
    parse: integer(5, 840),
    default: 75,
    unit: 's',
    doc: 'how long one relay pass works; longer than the schedule period (60), so that passes overlap',
  }),
  leaseSeconds: setting({
    env: 'OUTBOX_LEASE_SECONDS',
    // below 6 no request would fit into what is left before a renewal
    parse: integer(6, 300),
    default: 30,
    unit: 's',
    doc: 'how long a crashed relay blocks its shards; renewed at a third of it',
  }),
  claimRows: setting({
    env: 'OUTBOX_CLAIM_ROWS',
    parse: integer(1, 1000),
    default: 500,
    unit: 'rows',
    doc: 'events one claim takes at most',
  }),
  claimBytes: setting({
    env: 'OUTBOX_CLAIM_BYTES',
    parse: integer(64_000, 800_000),
    default: 700_000,
    unit: 'bytes',
    doc: "bytes one claim's answer may have; the Data API allows 1 MiB",
  }),
  keyRows: setting({
    env: 'OUTBOX_KEY_ROWS',
    parse: integer(1, 500),
    default: 50,
    unit: 'rows',
    doc: 'events of one ordering key in one claim at most',
  }),
  maxShards: setting({
    env: 'OUTBOX_CLAIM_SHARDS',
    parse: integer(1, 16),
    default: 8,
    unit: 'shards',
    doc: 'shards one claim leases at most, of 16; the default leaves room for a second batch or relay',
  }),
  maxAttempts: setting({
    env: 'OUTBOX_MAX_ATTEMPTS',
    parse: integer(1, 100),
    default: 10,
    unit: 'attempts',
    doc: 'charged attempts after which an event fails',
  }),
  retryBaseMs: setting({
    env: 'OUTBOX_RETRY_BASE_MS',
    parse: integer(10, 60_000),
    default: 500,
    unit: 'ms',
    doc: 'the first retry comes within this time; it doubles with each attempt',
  }),
  retryCapMs: setting({
    env: 'OUTBOX_RETRY_CAP_MS',
    parse: integer(100, 3_600_000),
    default: 60_000,
    unit: 'ms',
    doc: 'no retry waits longer than this',
  }),
  requestTimeoutMs: setting({
    env: 'OUTBOX_REQUEST_TIMEOUT_MS',
    parse: integer(500, 30_000),
    default: 5000,
    unit: 'ms',
    doc: 'a publish request without an answer for so long counts as failed; whether it arrived is unknown',
  }),
  requestsInFlight: setting({
    env: 'OUTBOX_REQUESTS_IN_FLIGHT',
    parse: integer(1, 64),
    default: 8,
    unit: 'requests',
    doc: 'publish requests at the same time, per destination',
  }),
  idleWaitMs: setting({
    env: 'OUTBOX_IDLE_WAIT_MS',
    parse: integer(20, 60_000),
    default: 250,
    unit: 'ms',
    doc: 'the longest wait between claims when nothing is due (profile continuous)',
  }),
  releasePerSecond: setting({
    env: 'OUTBOX_RELEASE_PER_SECOND',
    parse: integer(1, 100_000),
    default: 1000,
    unit: 'events/s',
    doc: 'events that were put aside for a destination and come back when it is up again, at most, over all relays',
  }),
} as const

/** The cleanup's own. */
export const cleanupSettings = {
  ...databaseSettings,
  retentionSeconds: setting({
    env: 'OUTBOX_RETENTION_SECONDS',
    parse: integer(60, 315_360_000),
    default: 604_800,
    unit: 's',
    doc: 'how long delivered and discarded events are kept; the default is 7 days. A writer may still ask for an event a minute after its commit',
  }),
  failedRetentionSeconds: setting<number | null>({
    env: 'OUTBOX_FAILED_RETENTION_SECONDS',
    parse: integer(3600, 315_360_000),
    default: null,
    unit: 's',
    doc: 'how long failed events are kept before they are discarded; the default is for ever',
  }),
  cleanupRows: setting({
    env: 'OUTBOX_CLEANUP_ROWS',
    parse: integer(1, 10_000),
    default: 1000,
    unit: 'rows',
    doc: 'events deleted in one transaction',
  }),
} as const

/** The monitor's own. */
export const monitorSettings = { ...databaseSettings } as const

/** The canary's own. */
export const canarySettings = {
  ...databaseSettings,
  destinations: setting<readonly string[]>({
    env: 'OUTBOX_CANARY_DESTINATIONS',
    parse: json(z.array(destinationName)),
    default: [],
    unit: 'JSON',
    doc: "list of the destinations that get a canary event: EventBridge buses of the relay's account",
  }),
} as const

/** The migration's own. */
export const migrateSettings = {
  ...databaseSettings,
  takeOverFrom: setting<string | null>({
    env: 'OUTBOX_TAKE_OVER_FROM',
    parse: databaseSettings.installation.parse,
    default: null,
    unit: '',
    doc: 'the installation that the outbox is taken over from; by default another one is refused',
  }),
  migrateSeconds: setting({
    env: 'OUTBOX_MIGRATE_SECONDS',
    parse: integer(10, 840),
    default: 300,
    unit: 's',
    doc: 'how long the migration waits for a cluster that is resuming or just created',
  }),
  userSecrets: setting<Readonly<Partial<Record<UserRole, string>>>>({
    env: 'OUTBOX_USER_SECRETS',
    parse: json(z.strictObject(Object.fromEntries(userRoles.map((role) => [role, secretArn.optional()])))),
    default: {},
    unit: 'JSON',
    doc: "function -> ARN of its database user's secret; the migration makes these users, by default none",
  }),
} as const
