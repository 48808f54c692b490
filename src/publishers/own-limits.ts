import type { Clock } from '../core/clock.js'
import type { Telemetry } from '../core/ports.js'
import { describeFailure } from './classify.js'

/** The attribute of queues and topics that says how many bytes they take. */
export const SIZE_ATTRIBUTE = 'MaximumMessageSize'

/** Somebody may change the attribute while a process lives: hours, on Lambda. */
export const REFRESH_MS = 5 * 60_000

/** A read takes milliseconds. One that hangs must not keep the pass, and so the other destinations, waiting for long. */
export const READ_TIMEOUT_MS = 1000

/** Reads how many bytes a queue or topic takes by its own attribute; undefined if it does not say. Throws what its client throws. */
export type ReadBytes = (signal: AbortSignal) => Promise<number | undefined>

/** The attribute as a number; undefined if it is absent or none that a service gives (1,024 to 1,048,576). */
export function parseBytes(attribute: string | undefined): number | undefined {
  const bytes = Number(attribute)
  return Number.isInteger(bytes) && bytes >= 1024 && bytes <= 1_048_576 ? bytes : undefined
}

/**
 * What queues and topics say of their own size limit, read at most every 5 minutes, all at once, within a second.
 *
 * A read that fails changes nothing: what was read before holds. It is logged once, and again only after one that succeeded.
 *
 * @example
 * const limits = new OwnLimits(new Map([['mail', (signal) => readQueueBytes(client, queueUrl, signal)]]), systemClock)
 * const { mail } = Object.fromEntries(await limits.read(telemetry))
 */
export class OwnLimits {
  readonly #bytes = new Map<string, number | undefined>()
  readonly #failing = new Set<string>()
  #readAtMs = Number.NEGATIVE_INFINITY

  /** @param readers - by destination; one that has no such attribute has none */
  constructor(
    private readonly readers: ReadonlyMap<string, ReadBytes>,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {}

  /** Bytes by destination, as far as they are known. Never throws. */
  async read(telemetry: Telemetry): Promise<ReadonlyMap<string, number | undefined>> {
    const now = this.clock.nowMs()
    if (now - this.#readAtMs >= REFRESH_MS) {
      this.#readAtMs = now
      await Promise.all([...this.readers].map(async ([destination, read]) => this.#readOne(destination, read, telemetry)))
    }
    return this.#bytes
  }

  async #readOne(destination: string, read: ReadBytes, telemetry: Telemetry): Promise<void> {
    try {
      this.#bytes.set(destination, await read(AbortSignal.timeout(READ_TIMEOUT_MS)))
      this.#failing.delete(destination)
    } catch (error) {
      if (this.#failing.has(destination)) return
      this.#failing.add(destination)
      const { code, reason } = describeFailure(error)
      telemetry.log('limit-unread', { destination, errorCode: code, error: reason })
    }
  }
}
