import type { Clock } from '../core/clock.js'
import type { Telemetry } from '../core/ports.js'
import { accountIn } from './account.js'
import { describeFailure } from './classify.js'
import { isAccessDenied, isMissing, plainCode } from './fault-codes.js'

/** Somebody may change or remove a destination while a process lives: hours, on Lambda. */
export const REFRESH_MS = 5 * 60_000

/** A read takes milliseconds. One that hangs must not keep the pass, and so the other destinations, waiting for long. */
export const READ_TIMEOUT_MS = 1000

/** What a queue, topic or bus says of itself. */
export interface Description {
  readonly arn: string | undefined
  /** Bytes it takes; undefined if it does not say. */
  readonly maxBytes: number | undefined
}

/** How to look at one destination. */
export interface Described {
  /** Its URL, ARN or name, as the configuration has it. */
  readonly resource: string
  /** Throws what its client throws. */
  describe(signal: AbortSignal, ownAccount: string | undefined): Promise<Description>
}

/** What is known of a destination. */
export interface DestinationState {
  readonly maxBytes: number | undefined
  /** Why nothing can arrive where it should, in one line: it does not exist, or is another account's. undefined: not known to be so. */
  readonly problem: string | undefined
}

const UNKNOWN: DestinationState = { maxBytes: undefined, problem: undefined }

/**
 * Whether destinations exist, are of the right account, and how many bytes they take: read at most every 5 minutes, at each
 * call while something is missing, all at once, within a second.
 *
 * A read that fails changes nothing: what was read before holds. It is logged once, and again only after one that succeeded.
 * One that is refused for want of a right leaves nothing known: who may not look must not stand in the way.
 *
 * @example
 * const check = new DestinationCheck(new Map([['mail', { resource: url, describe: (signal) => describeQueue(client, url, signal) }]]), systemClock)
 * const states = await check.states(telemetry, '111122223333')
 */
export class DestinationCheck {
  readonly #states = new Map<string, DestinationState>()
  readonly #unread = new Set<string>()
  #checkedAtMs = Number.NEGATIVE_INFINITY

  /** @param destinations - by name */
  constructor(
    private readonly destinations: ReadonlyMap<string, Described>,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {}

  /**
   * States by destination, as far as they are known. Never throws.
   *
   * @param ownAccount - whose a bus is that the configuration gives by its name alone; undefined: not known, so not checked
   */
  async states(telemetry: Telemetry, ownAccount: string | undefined): Promise<ReadonlyMap<string, DestinationState>> {
    const now = this.clock.nowMs()
    const isDue = now - this.#checkedAtMs >= REFRESH_MS
    if (isDue) this.#checkedAtMs = now
    const due = [...this.destinations].filter(([name]) => isDue || this.#states.get(name)?.problem !== undefined)
    await Promise.all(due.map(async ([name, destination]) => this.#checkOne(name, destination, telemetry, ownAccount)))
    const missing = [...this.#states.values()].filter(({ problem }) => problem !== undefined)
    telemetry.metric('DestinationsMissing', missing.length)
    return this.#states
  }

  async #checkOne(name: string, destination: Described, telemetry: Telemetry, ownAccount: string | undefined): Promise<void> {
    const { resource } = destination
    const before = this.#states.get(name) ?? UNKNOWN
    const expected = accountIn(resource) ?? ownAccount
    const missing = (maxBytes: number | undefined, problem: string, seen: string | null): void => {
      this.#unread.delete(name)
      this.#states.set(name, { maxBytes, problem })
      const accounts = { accountExpected: expected ?? null, accountSeen: seen }
      telemetry.log('destination-missing', { destination: name, resource, ...accounts, error: problem })
    }
    try {
      const { arn, maxBytes } = await destination.describe(AbortSignal.timeout(READ_TIMEOUT_MS), ownAccount)
      const seen = accountIn(arn)
      if (expected !== undefined && seen !== undefined && seen !== expected) {
        missing(maxBytes, `${resource} belongs to account ${seen}, expected is ${expected}`, seen)
        return
      }
      this.#unread.delete(name)
      this.#states.set(name, { maxBytes, problem: undefined })
    } catch (error) {
      const { code, reason } = describeFailure(error)
      if (isMissing(plainCode(code))) {
        missing(before.maxBytes, `${resource} does not exist (${code}: ${reason})`, null)
        return
      }
      if (isAccessDenied(plainCode(code))) this.#states.set(name, { ...before, problem: undefined })
      if (this.#unread.has(name)) return
      this.#unread.add(name)
      telemetry.log('destination-unchecked', { destination: name, resource, errorCode: code, error: reason })
    }
  }
}
