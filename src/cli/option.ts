import { InvalidArgumentError } from 'commander'

/** Reads an option that must be an integer from `min` to `max`. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`)
    return value
  }
}

/** Reads an option that must be the id of an event. */
export function eventId(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
    throw new InvalidArgumentError('It must be a UUID, e.g. 0197f3a2-7c1e-7d33-9a3b-6f0c8a1b2c3d.')
  }
  return text.toLowerCase()
}

/** Reads an option that must be a moment; answers milliseconds since 1970. */
export function moment(text: string): number {
  if (/^\d{12,14}$/.test(text)) return Number(text)
  const [, date] = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)$/.exec(text) ?? []
  const momentMs = Date.parse(text)
  // JavaScript takes 31 February for a day in March
  const isDay = date !== undefined && !Number.isNaN(momentMs) && new Date(date).toISOString().startsWith(date)
  if (isDay) return momentMs
  throw new InvalidArgumentError(
    'It must be a moment with its zone, e.g. 2026-11-29T10:00:00Z, or milliseconds since 1970, e.g. 1795946400000.',
  )
}

/** Reads an option that may not be empty or only blank, and has at most so many characters. */
export function textUpTo(length: number): (text: string) => string {
  return (text) => {
    const trimmed = text.trim()
    if (trimmed === '' || Array.from(trimmed).length > length)
      throw new InvalidArgumentError(`It must be 1 to ${length} characters that are not all blank.`)
    return trimmed
  }
}
