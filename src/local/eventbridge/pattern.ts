import { isObject } from '../front/protocol.js'
import type { Matcher } from './matchers.js'
import { compileMatcher } from './matchers.js'
import { PatternError } from './pattern-error.js'

/**
 * Compiles an EventBridge event pattern: exact values, prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric,
 * exists, cidr and `$or`. Lists in the event match if one of their elements does.
 *
 * @throws PatternError if EventBridge would not take the pattern.
 * @example
 * const matches = compilePattern('{"detail-type":[{"prefix":"Order"}]}')
 * matches({ 'detail-type': 'OrderCreated' }) // true
 */
export function compilePattern(pattern: string): (event: unknown) => boolean {
  let parsed: unknown
  try {
    parsed = JSON.parse(pattern)
  } catch {
    throw new PatternError('the event pattern is not JSON')
  }
  if (!isObject(parsed)) throw new PatternError('the event pattern is not an object')
  return compileObject(parsed, '')
}

function compileObject(pattern: Readonly<Record<string, unknown>>, path: string): Matcher {
  const fields = Object.entries(pattern)
  if (fields.length === 0) throw new PatternError(`${path === '' ? 'the event pattern' : path} is empty`)
  const tests = fields.map(([name, part]): Matcher => {
    const at = path === '' ? name : `${path}.${name}`
    if (name === '$or' && Array.isArray(part)) return compileOr(part, at)
    const test = compileField(part, at)
    return (value) => test(isObject(value) ? value[name] : undefined)
  })
  const matches: Matcher = (value) =>
    // a list of objects: one of them must fit as a whole
    Array.isArray(value) ? value.some((element) => matches(element)) : tests.every((test) => test(value))
  return matches
}

function compileField(part: unknown, path: string): Matcher {
  if (isObject(part)) return compileObject(part, path)
  if (!Array.isArray(part)) throw new PatternError(`${path} must be an object or an array`)
  if (part.length === 0) throw new PatternError(`${path} is an empty array`)
  const alternatives = part.map((element) => compileMatcher(element, path))
  return (value) => {
    const values: unknown[] = Array.isArray(value)
      ? value.length === 0
        ? [undefined]
        : value
      : [isObject(value) ? undefined : value]
    return values.some((one) => alternatives.some((matches) => matches(one)))
  }
}

function compileOr(parts: readonly unknown[], path: string): Matcher {
  if (parts.length < 2) throw new PatternError(`${path} must have at least 2 alternatives`)
  const alternatives = parts.map((part) => {
    if (!isObject(part)) throw new PatternError(`${path} must be a list of objects`)
    return compileObject(part, path)
  })
  return (value) => alternatives.some((matches) => matches(value))
}
