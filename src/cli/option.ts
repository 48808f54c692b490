import { InvalidArgumentError } from 'commander'

/** Reads an option that must be an integer from `min` to `max`. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`)
    return value
  }
}
