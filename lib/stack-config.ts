import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import { z } from 'zod'
import { destinationName, routesSchema } from '../src/config/destinations.js'
import { databaseSettings, relaySettings } from '../src/config/settings.js'
import { ConfigurationError } from '../src/core/errors.js'
import { show, whatItMustBe } from './problem.js'
import { tuningNames } from './relay-tuning.js'

const arn = (pattern: RegExp, shape: string) => z.string().regex(pattern, `must be the ARN of ${shape}`)

const keyArn = arn(/^arn:[^:]+:kms:[^:]+:\d{12}:key\/.+$/, 'a KMS key (arn:aws:kms:<region>:<account>:key/<id>)').optional()
const topicArn = arn(/^arn:[^:]+:sns:[^:]+:\d{12}:[A-Za-z0-9_.-]+$/, 'an SNS topic (arn:aws:sns:<region>:<account>:<name>)')

const delivery = {
  format: z.enum(['cloudevents', 'raw']).optional(),
  /** 1,048,576: the largest request of SQS and SNS. */
  maxBytes: z.number().int().min(1024).max(1_048_576).optional(),
}

const destinationSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('eventbridge'),
    // not `event-busv2`: that is another service, whose API the relay does not speak
    eventBusArn: arn(
      /^arn:[^:]+:events:[^:]+:\d{12}:event-bus\/[A-Za-z0-9_./-]+$/,
      'an EventBridge bus (arn:aws:events:<region>:<account>:event-bus/<name>)',
    ),
    ...delivery,
  }),
  z.strictObject({
    type: z.literal('sqs'),
    queueArn: arn(/^arn:[^:]+:sqs:[^:]+:\d{12}:[A-Za-z0-9_.-]+$/, 'an SQS queue (arn:aws:sqs:<region>:<account>:<name>)'),
    /** The queue's own key, where it has a customer-managed one. */
    keyArn,
    ...delivery,
  }),
  z.strictObject({ type: z.literal('sns'), topicArn, keyArn, ...delivery }),
])

/** Retentions that CloudWatch Logs knows, as far as they make sense here. */
const logRetentionDays = z.literal([
  RetentionDays.ONE_DAY,
  RetentionDays.THREE_DAYS,
  RetentionDays.FIVE_DAYS,
  RetentionDays.ONE_WEEK,
  RetentionDays.TWO_WEEKS,
  RetentionDays.ONE_MONTH,
  RetentionDays.TWO_MONTHS,
  RetentionDays.THREE_MONTHS,
  RetentionDays.SIX_MONTHS,
  RetentionDays.ONE_YEAR,
  RetentionDays.TWO_YEARS,
])

const days = z.number().min(0).max(3650)

/** What `cdk.json` or the file given by `-c config=FILE` may say: one installation on one existing cluster. */
export const stackConfigSchema = z.strictObject({
  installation: databaseSettings.installation.parse,
  cluster: z.strictObject({
    clusterArn: arn(
      /^arn:[^:]+:rds:[^:]+:\d{12}:cluster:.+$/,
      'an Aurora cluster (arn:aws:rds:<region>:<account>:cluster:<name>)',
    ),
    secretArn: arn(
      /^arn:[^:]+:secretsmanager:[^:]+:\d{12}:secret:.+-[A-Za-z0-9]{6}$/,
      'a secret, complete with its six-character suffix (arn:aws:secretsmanager:<region>:<account>:secret:<name>-AbCdEf)',
    ),
    /** The key the secret is encrypted with, where it is a customer-managed one. */
    secretKeyArn: keyArn,
    database: databaseSettings.database.parse,
    schema: databaseSettings.schema.parse.optional(),
  }),
  source: relaySettings.source.parse.optional(),
  destinations: z
    .record(destinationName, destinationSchema)
    .refine((destinations) => Object.keys(destinations).length > 0, 'must name at least one destination'),
  routes: routesSchema.optional(),
  default: destinationName.optional(),
  profile: z.enum(['continuous', 'drain']).optional(),
  tickMinutes: z.number().int().min(1).max(60).optional(),
  retentionDays: days.optional(),
  failedRetentionDays: days.min(1).optional(),
  logRetentionDays: logRetentionDays.optional(),
  relayMemoryMiB: z.number().int().min(128).max(10_240).optional(),
  relay: z.partialRecord(z.enum(tuningNames), z.number()).optional(),
  alarms: z
    .strictObject({
      backlogAgeSeconds: z.number().int().min(1).max(604_800).optional(),
      email: z.email().optional(),
      topicArn: topicArn.optional(),
    })
    .optional(),
})

export type StackConfig = z.infer<typeof stackConfigSchema>

/**
 * Checks a configuration.
 *
 * @throws ConfigurationError naming the first property that is wrong, the value seen and the value allowed, in one line.
 * @example
 * const config = parseStackConfig(JSON.parse(readFileSync('config.json', 'utf8')))
 */
export function parseStackConfig(value: unknown): StackConfig {
  const result = stackConfigSchema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  if (issue === undefined) throw new ConfigurationError('config', 'config is wrong')
  const property = z.core.toDotPath(issue.path)
  const seen = issue.path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[key] : undefined),
    value,
  )
  const { setting, text } = describe(issue, property, seen)
  throw new ConfigurationError(setting, text)
}

function describe(issue: z.core.$ZodIssue, property: string, seen: unknown): { readonly setting: string; readonly text: string } {
  const setting = property === '' ? 'config' : property
  if (issue.code === 'unrecognized_keys') {
    const unknown = [property, issue.keys[0] ?? ''].filter((part) => part !== '').join('.')
    return { setting: unknown, text: `${unknown} is not a property here. Remove it; docs/deploy.md lists those there are` }
  }
  if (issue.code === 'invalid_union' && issue.discriminator !== undefined) {
    return { setting, text: `${setting} must be one of "eventbridge", "sqs", "sns". Seen: ${show(seen)}` }
  }
  if (issue.code === 'invalid_key') {
    const [inner] = issue.issues
    return { setting, text: `${setting}: its name ${inner === undefined ? issue.message : whatItMustBe(inner)}` }
  }
  if (seen === undefined) return { setting, text: `${setting} is missing. It ${whatItMustBe(issue)}` }
  return { setting, text: `${setting} ${whatItMustBe(issue)}. Seen: ${show(seen)}` }
}
