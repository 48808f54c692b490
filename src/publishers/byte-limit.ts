import type { Publisher } from '../core/ports.js'

/** Bytes of a request, and who says so: a refusal names both. */
export interface ByteLimit {
  readonly bytes: number
  /** In the words of a reason: `its attribute MaximumMessageSize`. */
  readonly from: string
}

/** What a service takes at most, whatever anybody sets. */
export function serviceLimit(service: string, bytes: number): ByteLimit {
  return { bytes, from: `the limit of ${service}` }
}

/** What a queue or topic itself says; undefined if that is not known. */
export function ownLimit(bytes: number | undefined): ByteLimit | undefined {
  return bytes === undefined ? undefined : { bytes, from: 'its attribute MaximumMessageSize' }
}

/** What the operator set; undefined if nothing. */
export function settingLimit(bytes: number | undefined): ByteLimit | undefined {
  return bytes === undefined ? undefined : { bytes, from: 'the setting maxBytes of the destination' }
}

/** The smallest of these limits; of equal ones the first. */
export function smallestLimit(first: ByteLimit, ...others: readonly (ByteLimit | undefined)[]): ByteLimit {
  return others.reduce<ByteLimit>((least, one) => (one !== undefined && one.bytes < least.bytes ? one : least), first)
}

export function requestLimits(maxEntries: number, limit: ByteLimit): Publisher['limits'] {
  return { maxEntries, maxBytes: limit.bytes, maxBytesFrom: limit.from }
}

/** Why a message that is too large is refused, and what to do. */
export function tooLarge(
  bytes: number,
  limit: ByteLimit,
  what: string,
): { readonly ok: false; readonly code: string; readonly reason: string } {
  return {
    ok: false,
    code: 'TooLarge',
    reason: `the message has ${bytes} bytes, ${what} takes ${limit.bytes} (${limit.from}): store the data elsewhere and put a reference to it into the payload`,
  }
}
