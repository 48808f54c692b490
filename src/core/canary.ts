import type { MessageFormat } from './destination.js'
import type { Clock } from './clock.js'
import type { Telemetry } from './ports.js'

/** The type of canary events: no service writes it. */
export const CANARY_EVENT_TYPE = 'OutboxCanary'

/** A row of the outbox, as far as a canary has one: no ordering key, so nothing ever waits behind it. */
export interface CanaryEvent {
  readonly eventType: string
  readonly destination: string
  /** JSON text. */
  readonly payload: string
}

export interface CanaryOptions {
  /** What the function was invoked with: a canary that came back, else it is time to write. */
  readonly event: unknown
  readonly installation: string
  /** Names of the destinations to watch. */
  readonly destinations: readonly string[]
  /** Writes the events through the outbox, all or none. */
  readonly write: (events: readonly CanaryEvent[]) => Promise<void>
  readonly clock: Pick<Clock, 'epochMs'>
  readonly telemetry: Telemetry
}

/** What one invocation did. */
export type CanaryReport =
  | { readonly kind: 'written'; readonly destinations: readonly string[] }
  | { readonly kind: 'received'; readonly destination: string; readonly ageSeconds: number }
  | { readonly kind: 'ignored' }

/**
 * Writes a canary event for each destination, or measures the age of the one that came back. What looks like a canary is
 * never answered with another one, or the two would go round for ever.
 *
 * @throws SqlError if the events could not be written
 * @example
 * await canary({ event, installation: 'orders', destinations: ['bus'], write, clock, telemetry })
 */
export async function canary(options: CanaryOptions): Promise<CanaryReport> {
  const { event, installation, destinations, write, clock, telemetry } = options
  if (property(event, 'detail-type') !== CANARY_EVENT_TYPE) {
    if (destinations.length > 0) await write(destinations.map((destination) => canaryEvent(installation, destination)))
    telemetry.log('canary-written', { destinations: destinations.join(', ') })
    return { kind: 'written', destinations }
  }
  const received = readCanary(event)
  if (received?.installation !== installation || !destinations.includes(received.destination)) {
    telemetry.log('canary-ignored')
    return { kind: 'ignored' }
  }
  const { destination, writtenAtMs } = received
  // the two clocks may differ by more than the way takes
  const ageSeconds = Math.max(0, clock.epochMs() - writtenAtMs) / 1000
  telemetry.metric('CanaryAge', ageSeconds, { destination })
  telemetry.log('canary-received', { destination, ageSeconds })
  return { kind: 'received', destination, ageSeconds }
}

function canaryEvent(installation: string, destination: string): CanaryEvent {
  return { eventType: CANARY_EVENT_TYPE, destination, payload: JSON.stringify({ installation, destination }) }
}

/** A pattern in the JSON of EventBridge. */
export interface CanaryPattern {
  readonly source: readonly string[]
  readonly 'detail-type': readonly string[]
  readonly detail: Readonly<Record<string, unknown>>
}

/** The pattern of the rule that brings the canaries of one destination back. */
export function canaryPattern(canaries: {
  readonly source: string
  readonly installation: string
  readonly destination: string
  readonly format: MessageFormat | undefined
}): CanaryPattern {
  const { source, installation, destination, format } = canaries
  const payload = { installation: [installation], destination: [destination] }
  return { source: [source], 'detail-type': [CANARY_EVENT_TYPE], detail: format === 'raw' ? payload : { data: payload } }
}

interface ReceivedCanary {
  readonly installation: string
  readonly destination: string
  /** By the database's clock. */
  readonly writtenAtMs: number
}

/** Of a raw canary only the envelope says when it was written, in whole seconds. */
function readCanary(event: unknown): ReceivedCanary | null {
  const detail = property(event, 'detail')
  const isCloudEvent = property(detail, 'specversion') !== undefined
  const payload = isCloudEvent ? property(detail, 'data') : detail
  const installation = property(payload, 'installation')
  const destination = property(payload, 'destination')
  const writtenAtMs = Date.parse(String(property(isCloudEvent ? detail : event, 'time')))
  if (typeof installation !== 'string' || typeof destination !== 'string' || Number.isNaN(writtenAtMs)) return null
  return { installation, destination, writtenAtMs }
}

function property(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? (of as Readonly<Record<string, unknown>>)[name] : undefined
}
