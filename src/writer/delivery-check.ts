import type { EventContent } from '../core/cloud-event.js'
import type { Destinations } from '../core/destination.js'
import { ConfigurationError, InvalidEventError } from '../core/errors.js'
import { deliveryProblem, MESSAGE_LIMITS, unroutedProblem } from '../core/event-limits.js'
import { compileRoutes, type Route } from '../core/route.js'
import type { NewEventRow } from '../store/postgres/insert-events.js'

/** The relay's own default. */
const defaultSource = 'outbox-relay'

/** Where events go, as the relay is configured: give the writer the same. */
export interface DeliveryOptions {
  /**
   * Destination name -> where it is. With it each event is checked against what its destination takes, and one that has no
   * destination is refused. Default: no destination is known, and a message may have 1,000,000 bytes.
   */
  readonly destinations?: Destinations | undefined
  /** Default: none. */
  readonly routes?: readonly Route[] | undefined
  /** Name of the destination of events that no route matches. Default: none. */
  readonly default?: string | undefined
  /** The CloudEvents source of every message, whose length counts. Default `outbox-relay`. */
  readonly source?: string | undefined
}

/** Throws `InvalidEventError` for an event that its destination can never take, or that has none. */
export type DeliveryCheck = (row: NewEventRow) => void

export function createDeliveryCheck(options: DeliveryOptions): DeliveryCheck {
  const { destinations, routes = [], default: defaultDestination, source = defaultSource } = options
  if (destinations === undefined) {
    if (routes.length > 0 || defaultDestination !== undefined)
      throw new ConfigurationError('destinations', 'destinations is absent, and routes and default name destinations of it')
    return (row) => {
      refuse(unroutedProblem(contentOf(row), source))
    }
  }
  requireDestinations(destinations)
  for (const [index, { to }] of routes.entries()) requireKnown(`routes[${index}].to`, to, destinations)
  if (defaultDestination !== undefined) requireKnown('default', defaultDestination, destinations)
  const route = compileRoutes({ destinations, routes, defaultDestination: defaultDestination ?? null })

  return (row) => {
    const routing = route(row.eventType, row.destination ?? null)
    if (routing.kind === 'unrouted') {
      throw new InvalidEventError(row.destination === undefined ? 'eventType' : 'destination', routing.reason)
    }
    const destination = destinations[routing.destination]
    if (destination !== undefined) refuse(deliveryProblem(contentOf(row), routing.destination, destination, source))
  }
}

function refuse(problem: ReturnType<typeof deliveryProblem>): void {
  if (problem !== null) throw new InvalidEventError(problem.field, problem.reason)
}

function contentOf(row: NewEventRow): EventContent {
  return {
    id: row.id,
    eventType: row.eventType,
    eventVersion: row.eventVersion ?? 1,
    aggregateId: row.aggregateId ?? null,
    orderingKey: row.orderingKey ?? null,
    headers: row.headers ?? null,
    payload: row.payload,
    // the database's clock decides, and every time has the same length
    createdAtMs: Date.now(),
  }
}

function requireDestinations(destinations: Destinations): void {
  const types = Object.keys(MESSAGE_LIMITS)
  for (const [name, destination] of Object.entries(destinations)) {
    if (!types.includes(destination.type)) {
      throw new ConfigurationError(
        `destinations.${name}.type`,
        `destinations.${name}.type is "${destination.type}"; allowed: ${types.join(', ')}`,
      )
    }
  }
}

function requireKnown(setting: string, name: string, destinations: Destinations): void {
  if (Object.hasOwn(destinations, name)) return
  const known = Object.keys(destinations).join(', ')
  throw new ConfigurationError(setting, `${setting} is "${name}", which is no destination; configured: ${known}`)
}
