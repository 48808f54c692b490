import { Token } from 'aws-cdk-lib'
import { destinationName } from '../src/config/destinations.js'
import type { Route } from '../src/core/route.js'
import { ConfigurationError } from '../src/core/errors.js'
import { show, whatItMustBe } from './problem.js'
import type { ResolvedTuning } from './relay-tuning.js'

/** What must fit together, by the names of the configuration. */
export interface Installation {
  readonly profile: 'continuous' | 'drain'
  readonly tickMinutes: number
  readonly tuning: ResolvedTuning
  readonly backlogAgeSeconds: number
  /** Destination name -> where it is. */
  readonly destinations: Readonly<Record<string, { readonly arn: string; readonly region: string }>>
  readonly routes: readonly Route[]
  readonly defaultDestination: string | undefined
  readonly region: string
}

/** Ticks that relay and monitor can share on the clock: divisors of an hour, long enough for Aurora to pause (300 s). */
const drainTicks = [10, 12, 15, 20, 30, 60]

/** @throws ConfigurationError naming the property, its value and the fix. */
export function checkInstallation(installation: Installation): void {
  checkDestinations(installation)
  checkTimes(installation)
}

function checkDestinations({ destinations, routes, defaultDestination, region }: Installation): void {
  const names = Object.keys(destinations)
  if (names.length === 0) refuse('destinations', 'names none. Name at least one')
  for (const name of names) {
    const result = destinationName.safeParse(name)
    const [issue] = result.error?.issues ?? []
    if (issue !== undefined) refuse(`destinations.${name}`, `is not a good name: it ${whatItMustBe(issue)}`)
  }

  for (const [name, destination] of Object.entries(destinations)) {
    if (Token.isUnresolved(region) || Token.isUnresolved(destination.region) || destination.region === region) continue
    refuse(
      `destinations.${name}`,
      `is ${destination.arn}, in ${destination.region}, but the cluster and the relay are in ${region}. ` +
        `Name one in ${region}; an EventBridge rule can forward to another region`,
    )
  }

  const known = `Configured are: ${names.join(', ')}`
  for (const [index, route] of routes.entries()) {
    if (!Object.hasOwn(destinations, route.to))
      refuse(`routes[${index}].to`, `is ${show(route.to)}, which is not a destination. ${known}. Add it or correct the name`)
  }
  if (defaultDestination !== undefined && !Object.hasOwn(destinations, defaultDestination))
    refuse('default', `is ${show(defaultDestination)}, which is not a destination. ${known}. Add it or correct the name`)
}

function checkTimes({ profile, tickMinutes, tuning, backlogAgeSeconds }: Installation): void {
  const tickSeconds = tickMinutes * 60
  if (profile === 'drain' && !drainTicks.includes(tickMinutes))
    refuse('tickMinutes', `is ${tickMinutes}, but profile "drain" takes one of ${drainTicks.join(', ')}. Set it to one of them`)
  if (profile === 'continuous' && tuning.passSeconds <= tickSeconds)
    refuse(
      'relay.passSeconds',
      `is ${tuning.passSeconds}, not longer than the tick of ${tickSeconds} s: between two passes nobody would relay. ` +
        `Set it to ${tickSeconds + 15} or shorten tickMinutes`,
    )
  if (tuning.leaseSeconds >= tuning.passSeconds)
    refuse(
      'relay.leaseSeconds',
      `is ${tuning.leaseSeconds}, not shorter than relay.passSeconds (${tuning.passSeconds}): a crashed pass would block its shards ` +
        `for longer than a pass lasts. Set it below ${tuning.passSeconds}`,
    )
  if (tuning.requestTimeoutMs >= tuning.leaseSeconds * 1000)
    refuse(
      'relay.requestTimeoutMs',
      `is ${tuning.requestTimeoutMs}, not shorter than relay.leaseSeconds (${tuning.leaseSeconds}): a request could outlive its lease. ` +
        `Set it below ${tuning.leaseSeconds * 1000}`,
    )
  if (tuning.retryBaseMs > tuning.retryCapMs)
    refuse(
      'relay.retryBaseMs',
      `is ${tuning.retryBaseMs}, more than relay.retryCapMs (${tuning.retryCapMs}). Set it to ${tuning.retryCapMs} or less`,
    )
  if (profile === 'drain' && backlogAgeSeconds <= tickSeconds)
    refuse(
      'alarms.backlogAgeSeconds',
      `is ${backlogAgeSeconds}, not longer than the tick of ${tickSeconds} s: events wait that long in profile "drain" when all is well. ` +
        `Set it above ${tickSeconds}`,
    )
}

function refuse(property: string, problem: string): never {
  throw new ConfigurationError(property, `${property} ${problem}`)
}
