import { type Stack, Token } from 'aws-cdk-lib'
import { toEnvironment } from '../src/config/parse.js'
import type { Settings, SettingValues } from '../src/config/setting.js'
import { databaseSettings, migrateSettings, relaySettings } from '../src/config/settings.js'
import type { Destination, Destinations } from '../src/core/destination.js'
import { ConfigurationError } from '../src/core/errors.js'

/** Lambda takes no more than 4,096 bytes of names and values together. */
const maxBytes = 4096
/** What the function sets besides its settings (relay-function.ts), names included, rounded up. */
const reservedBytes = 64

/** Stand-ins for what CloudFormation fills in at deployment, so that everything else is checked at synthesis. */
const standIns = {
  [databaseSettings.resourceArn.env]: 'arn:aws:rds:us-east-1:000000000000:cluster:filled-in-at-deployment',
  [databaseSettings.secretArn.env]: 'arn:aws:secretsmanager:us-east-1:000000000000:secret:filled-in-at-deployment-000000',
}

/**
 * The environment variables of a handler.
 *
 * @throws ConfigurationError if the handler would refuse a value, or Lambda the whole.
 */
export function handlerEnvironment<S extends Settings>(
  stack: Stack,
  settings: S,
  values: Partial<SettingValues<S>>,
): Readonly<Record<string, string>> {
  const later: Record<string, string> = {}
  const now = Object.entries(values).map(([name, value]) => {
    const env = settings[name]?.env ?? name
    if (env === relaySettings.destinations.env) {
      const destinations = value as Destinations
      const checkable = Object.fromEntries(Object.entries(destinations).map(([key, one]) => [key, standInFor(one)]))
      if (JSON.stringify(checkable) !== JSON.stringify(destinations)) later[env] = stack.toJsonString(destinations)
      return [name, checkable] as const
    }
    if (env === migrateSettings.userSecrets.env) {
      const checkable = Object.fromEntries(
        Object.keys(value as object).map((role) => [role, standIns[databaseSettings.secretArn.env]]),
      )
      later[env] = stack.toJsonString(value)
      return [name, checkable] as const
    }
    if (!Token.isUnresolved(value)) return [name, value] as const
    const standIn = standIns[env]
    if (standIn === undefined)
      throw new ConfigurationError(name, `${name} is known only at deployment. It must be a value that is known at synthesis`)
    later[env] = value as string
    return [name, standIn] as const
  })
  const environment = toEnvironment(settings, Object.fromEntries(now) as Partial<SettingValues<S>>)
  checkSize(environment)
  return { ...environment, ...later }
}

function standInFor(destination: Destination): Destination {
  switch (destination.type) {
    case 'sqs':
      return Token.isUnresolved(destination.queueUrl)
        ? { ...destination, queueUrl: 'https://sqs.us-east-1.amazonaws.com/000000000000/filled-in-at-deployment' }
        : destination
    case 'sns':
      return Token.isUnresolved(destination.topicArn)
        ? { ...destination, topicArn: 'arn:aws:sns:us-east-1:000000000000:filled-in-at-deployment' }
        : destination
    case 'eventbridge':
      return Token.isUnresolved(destination.eventBusName)
        ? { ...destination, eventBusName: 'arn:aws:events:us-east-1:000000000000:event-bus/filled-in-at-deployment' }
        : destination
  }
}

function checkSize(environment: Readonly<Record<string, string>>): void {
  const sizes = Object.entries(environment).map(([name, value]) => ({ name, bytes: Buffer.byteLength(name + value) }))
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, reservedBytes)
  if (total <= maxBytes) return
  const largest = sizes.reduce((one, other) => (other.bytes > one.bytes ? other : one))
  throw new ConfigurationError(
    largest.name,
    `the settings take ${total} bytes of environment variables, and Lambda allows ${maxBytes}. ` +
      `The largest is ${largest.name} with ${largest.bytes}: use fewer destinations or routes (a glob can stand for many event types)`,
  )
}
