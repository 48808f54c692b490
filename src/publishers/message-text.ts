import { cloudEvent, rawEvent, type EncodedEvent } from '../core/cloud-event.js'
import { reduceHeaders, reduceName } from '../core/cloud-event-headers.js'
import type { MessageFormat } from '../core/destination.js'
import { PRINTABLE_ASCII } from '../core/event-limits.js'
import type { OutboundEvent } from '../core/event.js'

/** What every publisher sends of an event: the text, and headers that also travel outside it. */
export interface MessageText extends EncodedEvent {
  /** A header's value if all of it is printable ASCII, as attributes outside the text demand; undefined if absent or not. */
  header(name: string): string | undefined
}

/** Encodes an event in a destination's format. */
export function messageText(event: OutboundEvent, format: MessageFormat | undefined, source: string): MessageText {
  const headers = reduceHeaders(event.headers)
  const encoded = format === 'raw' ? rawEvent(event) : cloudEvent(event, { source }, headers)
  return {
    ...encoded,
    header: (name) => {
      const value = headers.attributes.get(reduceName(name))
      return value !== undefined && PRINTABLE_ASCII.test(value) ? value : undefined
    },
  }
}
