import { seededRandom } from '../src/local/faults/random.js'

/** Choices from a seed. */
export interface Dice {
  /** In [0, 1). */
  next(): number
  /** Anywhere from `min` to below `max`. */
  between(min: number, max: number): number
  /** A whole number, both ends included. */
  integer(min: number, max: number): number
  chance(probability: number): boolean
  pick<Value>(values: readonly Value[]): Value
  /** The keys' values are their weights. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name
}

/**
 * Dice of their own for each part of a run: what one part does moves no other, so that a part can be changed, or left out by
 * a scenario, and all others stay as the seed had them.
 *
 * @example
 * diceOf(7, 'writer', 3).chance(0.2)
 */
export function diceOf(seed: number, ...part: readonly (string | number)[]): Dice {
  const next = seededRandom(hash(`${seed}/${part.join('/')}`))
  const between = (min: number, max: number) => min + next() * (max - min)
  const integer = (min: number, max: number) => Math.floor(between(min, max + 1))
  return {
    next,
    between,
    integer,
    chance: (probability) => next() < probability,
    pick: (values) => values[integer(0, values.length - 1)]!,
    weighted: <Name extends string>(weights: Readonly<Record<Name, number>>) => {
      const names = Object.keys(weights) as Name[]
      let left = next() * names.reduce((sum, name) => sum + weights[name], 0)
      return names.find((name) => (left -= weights[name]) < 0) ?? names.at(-1)!
    },
  }
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let hashed = 0x811c9dc5
  for (const byte of Buffer.from(text)) hashed = Math.imul(hashed ^ byte, 0x01000193)
  return hashed >>> 0
}
