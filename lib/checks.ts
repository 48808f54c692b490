import { Token } from 'aws-cdk-lib'
import { destinationName } from '../src/config/destinations.js'
import type { Route } from '../src/core/route.js'
import { ConfigurationError } from '../src/core/errors.js'
import { show, whatItMustBe } from './problem.js'
import type { ResolvedTuning } from './relay-tuning.js'

/** What must fit together in time, by the names of the configuration. */
export interface Timing {
  readonly profile: 'continuous' | 'drain'
  readonly tickSeconds: number
  readonly tuning: ResolvedTuning
  readonly backlogAgeSeconds: number
  readonly relays: number
  /** How long one invocation of the relay may last. */
  readonly relaySeconds: number
  readonly reservedConcurrency: number | undefined
}

/** A destination, as far as it can be wrong. */
export interface DestinationPlace {
  readonly arn: string
  readonly region: string
}

/** Which events go where. */
export interface Routing {
  readonly destinations: readonly string[]
  readonly routes: readonly Route[]
  readonly defaultDestination: string | undefined
}

/** Ticks that relay and monitor can share on the clock: divisors of an hour, long enough for Aurora to pause (300 s). */
const drainTicks = [10, 12, 15, 20, 30, 60]
const maxRelays = 8

/** @throws ConfigurationError if its name is no good, or it is in another region than the relay. */
export function checkDestination(name: string, destination: DestinationPlace, region: string): void {
  const result = destinationName.safeParse(name)
  const [issue] = result.error?.issues ?? []
  if (issue !== undefined) refuse(`destinations.${name}`, `is not a good name: it ${whatItMustBe(issue)}`)

  if (Token.isUnresolved(region) || Token.isUnresolved(destination.region) || destination.region === region) return
  refuse(
    `destinations.${name}`,
    `is ${destination.arn}, in ${destination.region}, but the cluster and the relay are in ${region}. ` +
      `Name one in ${region}; an EventBridge rule can forward to another region`,
  )
}

/** @throws ConfigurationError if there is no destination, or an event would be sent to one that is not there. */
export function checkRouting({ destinations, routes, defaultDestination }: Routing): void {
  if (destinations.length === 0) refuse('destinations', 'names none. Name at least one')

  const known = `Configured are: ${destinations.join(', ')}`
  for (const [index, route] of routes.entries()) {
    if (!destinations.includes(route.to))
      refuse(`routes[${index}].to`, `is ${show(route.to)}, which is not a destination. ${known}. Add it or correct the name`)
  }
  if (defaultDestination !== undefined && !destinations.includes(defaultDestination))
    refuse('default', `is ${show(defaultDestination)}, which is not a destination. ${known}. Add it or correct the name`)
}

/** @throws ConfigurationError naming the property, its value and the fix. */
export function checkTiming(timing: Timing): void {
  checkTick(timing)
  checkRelay(timing)
  checkConcurrency(timing)
}

function checkTick({ profile, tickSeconds, tuning, backlogAgeSeconds }: Timing): void {
  const tickMinutes = tickSeconds / 60
  if (!Number.isInteger(tickMinutes) || tickMinutes < 1 || tickMinutes > 60)
    refuse('tickMinutes', `is ${show(tickMinutes)}, but schedules tick in whole minutes, 1 to 60. Set it to one of them`)
  if (profile === 'drain' && !drainTicks.includes(tickMinutes))
    refuse('tickMinutes', `is ${tickMinutes}, but profile "drain" takes one of ${drainTicks.join(', ')}. Set it to one of them`)
  if (profile === 'continuous' && tuning.passSeconds <= tickSeconds)
    refuse(
      'relay.passSeconds',
      `is ${tuning.passSeconds}, not longer than the tick of ${tickSeconds} s: between two passes nobody would relay. ` +
        `Set it to ${tickSeconds + 15} or shorten tickMinutes`,
    )
  // 60: a cluster that has paused for a day takes 30 s and more to resume
  if (profile === 'drain' && backlogAgeSeconds < tickSeconds + 60)
    refuse(
      'alarms.backlogAgeSeconds',
      `is ${backlogAgeSeconds}, not a minute longer than the tick of ${tickSeconds} s: events wait for the tick, and for the cluster to ` +
        `resume, in profile "drain" when all is well. Set it to ${tickSeconds + 60} or more`,
    )
}

function checkRelay({ tuning }: Timing): void {
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
}

function checkConcurrency({ relays, relaySeconds, tickSeconds, reservedConcurrency }: Timing): void {
  if (!Number.isInteger(relays) || relays < 1 || relays > maxRelays)
    refuse('relays', `is ${show(relays)}, but there can be 1 to ${maxRelays}. Set it to one of them`)
  if (reservedConcurrency === undefined) return
  const atOnce = relays * Math.ceil(relaySeconds / tickSeconds)
  if (!Number.isInteger(reservedConcurrency) || reservedConcurrency < atOnce)
    refuse(
      'reservedConcurrency',
      `is ${show(reservedConcurrency)}, but ${relays === 1 ? 'the relay' : `${relays} relays`} of up to ${relaySeconds} s every ${tickSeconds} s ` +
        `may need ${atOnce} at once: the others would be refused, and nobody would relay meanwhile. Set it to ${atOnce} or more, or leave it out`,
    )
}

function refuse(property: string, problem: string): never {
  throw new ConfigurationError(property, `${property} ${problem}`)
}
