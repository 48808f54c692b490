import type { ChaosOptions } from './options.js'
import { diceOf, type Dice } from './random.js'
import { destinations } from './schedule.js'

export interface PlannedEvent {
  /** `Skipped...` are routed with onFailure `skip`. */
  readonly eventType: string
  readonly key: string | null
  /** null: the default destination. */
  readonly destination: string | null
  readonly payloadBytes: number
  /** From now; null: none. In the past: a caller whose clock is wrong. */
  readonly availableInMs: number | null
  /** By how much the caller's `created_at` is wrong; null: it sets none. Plain SQL alone can. */
  readonly createdOffMs: number | null
}

/** One transaction of a writer. */
export interface Operation {
  readonly atMs: number
  readonly number: number
  readonly by: 'writer' | 'sql'
  readonly end: 'commit' | 'rollback'
  readonly events: readonly PlannedEvent[]
  /** Between the events and the end of the transaction: a service's own long business. */
  readonly holdMs: number
  /** Events have idempotency keys, and the whole is written a second time if it fails. */
  readonly idempotent: boolean
}

/** Milliseconds between two transactions of a writer, on average. */
const gapMs = 300
/** Enough of them that writers seldom wait for each other's locks. */
const keys = 1000
const hotKeys = 8
const hourMs = 3_600_000
/** More than any destination takes: it fails, with a reason. */
export const unsendableBytes = 1_060_000

/** What one writer writes in a run, from the seed alone. */
export function operationsOf({ seed, seconds }: Pick<ChaosOptions, 'seed' | 'seconds'>, writer: number): readonly Operation[] {
  const dice = diceOf(seed, 'writer', writer)
  const operations: Operation[] = []
  for (let atMs = 0; ;) {
    atMs += -Math.log(1 - dice.next()) * gapMs
    if (atMs >= seconds * 1000) return operations
    operations.push(operation(dice, atMs, operations.length))
  }
}

function operation(dice: Dice, atMs: number, number: number): Operation {
  const by = dice.pick(['writer', 'sql'] as const)
  const isLong = dice.chance(0.008)
  const length = dice.between(1_000, 7_000)
  const count = dice.chance(0.05) ? dice.integer(5, 20) : dice.integer(1, 3)
  return {
    atMs,
    number,
    by,
    end: dice.chance(0.15) ? 'rollback' : 'commit',
    events: Array.from({ length: count }, () => event(dice, by)),
    holdMs: isLong ? length : dice.chance(0.3) ? dice.between(0, 60) : 0,
    idempotent: dice.chance(0.2) && by === 'writer',
  }
}

function event(dice: Dice, by: Operation['by']): PlannedEvent {
  const isKeyed = dice.chance(0.6)
  const key = dice.chance(0.05) ? `hot-${dice.integer(1, hotKeys)}` : `key-${dice.integer(1, keys)}`
  const isScheduled = dice.chance(0.03)
  const availableInMs = Math.round(dice.chance(0.3) ? dice.between(-9, 0) * hourMs : dice.between(200, 5_000))
  const isOff = dice.chance(0.3)
  const createdOffMs = Math.round(dice.between(-12, 12) * hourMs)
  return {
    eventType: dice.weighted({ Moved: 6, SkippedOnFailure: 1 }),
    key: isKeyed ? key : null,
    destination: dice.chance(0.1) ? null : dice.pick(destinations),
    payloadBytes: payloadBytes(dice, by),
    availableInMs: isScheduled ? availableInMs : null,
    createdOffMs: isOff && by === 'sql' ? createdOffMs : null,
  }
}

function payloadBytes(dice: Dice, by: Operation['by']): number {
  const size = dice.weighted({ bytes: 900, kilobytes: 80, chunked: 16, megabyte: 3, unsendable: 1 })
  const sizes = {
    bytes: dice.integer(40, 600),
    kilobytes: dice.integer(600, 48_000),
    // above 48,000 bytes a payload is fetched in chunks
    chunked: dice.integer(48_000, 250_000),
    megabyte: dice.integer(250_000, 990_000),
    unsendable: by === 'sql' ? unsendableBytes : 40,
  }
  return sizes[size]
}

/** The payload of an event: so many bytes of JSON, as long as it may be. */
export function payloadOf({ payloadBytes: bytes }: PlannedEvent, writer: number, operation: number): string {
  const head = `{"writer":${writer},"operation":${operation},"fill":"`
  return `${head}${'x'.repeat(Math.max(0, bytes - head.length - 2))}"}`
}
