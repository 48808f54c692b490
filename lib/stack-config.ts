import { z } from 'zod'
import { ConfigurationError } from '../src/core/errors.js'
import { show, whatItMustBe } from './problem.js'
import { clusterDefaults } from './stack-config-defaults.js'
import { type StackConfig, stackConfigSchema } from './stack-config-schema.js'

export type { StackConfig }

/**
 * Checks a configuration.
 *
 * @throws ConfigurationError naming the first property that is wrong, the value seen and the value allowed, in one line.
 * @example
 * const config = parseStackConfig(JSON.parse(readFileSync('config.json', 'utf8')))
 */
export function parseStackConfig(value: unknown): StackConfig {
  const result = stackConfigSchema.safeParse(value)
  if (result.success) {
    checkWhatBelongsTogether(result.data)
    return result.data
  }
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
    return { setting: unknown, text: `${unknown} is not a property here. Remove it; docs/configuration.md lists those there are` }
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

/** The stack's output with the ARN of a destination that it makes. */
export function destinationOutput(name: string): string {
  const letters = name.replaceAll(/[^A-Za-z0-9]/g, '')
  return `Destination${letters.charAt(0).toUpperCase()}${letters.slice(1)}Arn`
}

/** What the configuration alone can have wrong; the rest is checked by the construct (checks.ts). */
function checkWhatBelongsTogether(config: StackConfig): void {
  const { cluster, destinations, profile } = config
  checkCluster(cluster, profile)
  checkRegion(config)
  const outputs = new Map<string, string>()
  for (const [name, destination] of Object.entries(destinations)) {
    checkDestination(`destinations.${name}`, destination)
    if (destination.create === undefined) continue
    const output = destinationOutput(name)
    const other = outputs.get(output)
    if (other !== undefined)
      refuse(
        `destinations.${name}`,
        `would have the output ${output}, as destinations.${other} has: CloudFormation takes letters and digits alone. Rename one of them`,
      )
    outputs.set(output, name)
  }
}

function checkCluster({ create, ...existing }: StackConfig['cluster'], profile: StackConfig['profile']): void {
  oneOf('cluster', { clusterArn: existing.clusterArn, create })
  if (create === undefined) {
    if (existing.secretArn === undefined)
      refuse('cluster.secretArn', 'is missing. An existing cluster needs it: the ARN of the secret to reach it with')
    return
  }
  for (const name of ['secretArn', 'secretKeyArn'] as const)
    if (existing[name] !== undefined)
      refuse(
        `cluster.${name}`,
        'is of an existing cluster, but cluster.create makes a new one, whose secret RDS keeps. Remove it',
      )
  if (!/^[A-Za-z][A-Za-z0-9_]{0,62}$/.test(existing.database))
    refuse(
      'cluster.database',
      `is ${show(existing.database)}, but RDS makes a database of 1 to 63 letters, digits or "_", beginning with a letter. Rename it`,
    )

  const { minCapacity = clusterDefaults.minCapacity, maxCapacity = clusterDefaults.maxCapacity } = create
  if (minCapacity > maxCapacity)
    refuse(
      'cluster.create.minCapacity',
      `is ${minCapacity}, more than cluster.create.maxCapacity (${maxCapacity}). Set it to ${maxCapacity} or less`,
    )
  if (minCapacity === 0 && profile !== 'drain')
    refuse(
      'cluster.create.minCapacity',
      'is 0, so that the cluster can pause, but profile "continuous" never stops asking it for events. ' +
        'Set profile to "drain", or cluster.create.minCapacity to 0.5',
    )
}

/** An existing cluster decides where the stack is. The destinations themselves are looked at by the construct (checks.ts). */
function checkRegion({ cluster, destinations, userSecretsKeyArn, alarms }: StackConfig): void {
  const region = regionOf(cluster.clusterArn)
  if (region === undefined) return
  const arns: Readonly<Record<string, string | undefined>> = {
    'cluster.secretArn': cluster.secretArn,
    'cluster.secretKeyArn': cluster.secretKeyArn,
    userSecretsKeyArn,
    'alarms.topicArn': alarms?.topicArn,
    ...Object.fromEntries(
      Object.entries(destinations).map(([name, one]) => [
        `destinations.${name}.keyArn`,
        'keyArn' in one ? one.keyArn : undefined,
      ]),
    ),
  }
  for (const [property, arn] of Object.entries(arns)) {
    const seen = regionOf(arn)
    if (seen !== undefined && seen !== region)
      refuse(property, `is in ${seen} (${arn}), but the cluster, and with it the stack, is in ${region}. Name one in ${region}`)
  }
}

const regionOf = (arn: string | undefined): string | undefined => arn?.split(':')[3]

function checkDestination(property: string, destination: StackConfig['destinations'][string]): void {
  const { create } = destination
  if (destination.type === 'eventbridge') {
    oneOf(property, { eventBusArn: destination.eventBusArn, create })
    return
  }
  if (destination.type === 'sqs') oneOf(property, { queueArn: destination.queueArn, create })
  else oneOf(property, { topicArn: destination.topicArn, create })
  if (destination.keyArn !== undefined && create !== undefined)
    refuse(`${property}.keyArn`, `is of an existing one, but ${property}.create makes a new one. Remove it`)
}

/** Either what is there, or what is to be made. */
function oneOf(property: string, choices: Readonly<Record<string, unknown>>): void {
  const names = Object.keys(choices)
  const chosen = names.filter((name) => choices[name] !== undefined)
  if (chosen.length === 1) return
  const [existing = '', create = ''] = names
  refuse(
    property,
    chosen.length === 0
      ? `needs ${existing} (of one that is there) or ${create} (for a new one). Add one of them`
      : `has both ${existing} (of one that is there) and ${create} (for a new one). Remove one of them`,
  )
}

function refuse(property: string, problem: string): never {
  throw new ConfigurationError(property, `${property} ${problem}`)
}
