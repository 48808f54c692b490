import type { Destinations } from './destination.js'

/** What happens to later events of an ordering key when one of them fails for good. */
export type OnFailure = 'block' | 'skip'

/** Which destination an event type goes to; the first route that matches decides. */
export interface Route {
  /** Glob over the event type: `*` any run of characters, `?` exactly one. */
  readonly eventType: string
  readonly to: string
  /** Default `block`. */
  readonly onFailure?: OnFailure | undefined
}

export interface RoutingTable {
  readonly destinations: Destinations
  readonly routes: readonly Route[]
  readonly defaultDestination: string | null
}

export type Routing =
  | { readonly kind: 'to'; readonly destination: string; readonly onFailure: OnFailure }
  /** No route and no default, or a destination that is not configured: an operator's fault, so the event waits. */
  | { readonly kind: 'unrouted'; readonly destination: string | null; readonly reason: string }

/**
 * Compiles a table into the function that routes one event: the row's own destination if set, else the first matching
 * route, else the default.
 *
 * @example
 * const route = compileRoutes({ destinations, routes: [{ eventType: 'Order*', to: 'orders' }], defaultDestination: 'bus' })
 * route('OrderCreated', null) // { kind: 'to', destination: 'orders', onFailure: 'block' }
 */
export function compileRoutes(table: RoutingTable): (eventType: string, chosen: string | null) => Routing {
  const routes = table.routes.map((route) => ({ ...route, pattern: globPattern(route.eventType) }))

  return (eventType, chosen) => {
    const route = routes.find(({ pattern }) => pattern.test(eventType))
    const destination = chosen ?? route?.to ?? table.defaultDestination
    if (destination === null) {
      return {
        kind: 'unrouted',
        destination: null,
        reason: `no route matches event type "${eventType}", and there is no default destination`,
      }
    }
    if (!Object.hasOwn(table.destinations, destination)) {
      const known = Object.keys(table.destinations).join(', ')
      return {
        kind: 'unrouted',
        destination,
        reason: `event type "${eventType}" goes to destination "${destination}", which is not configured (configured: ${known})`,
      }
    }
    return { kind: 'to', destination, onFailure: route?.onFailure ?? 'block' }
  }
}

function globPattern(glob: string): RegExp {
  const source = glob.replace(/[.*+?^${}()|[\]\\]/g, (char) => (char === '*' ? '[^]*' : char === '?' ? '[^]' : `\\${char}`))
  return new RegExp(`^${source}$`)
}
