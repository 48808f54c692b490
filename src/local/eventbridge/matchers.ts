import { BlockList, isIPv6 } from 'node:net'
import { isObject } from '../front/protocol.js'
import { PatternError } from './pattern-error.js'

/** Whether a value of the event fits; undefined stands for a field that is not there. */
export type Matcher = (value: unknown) => boolean

/** Compiles one element of a pattern's list: a value, or an object with one operator. */
export function compileMatcher(element: unknown, path: string): Matcher {
  if (!isObject(element)) {
    if (Array.isArray(element)) throw new PatternError(`${path}: a list inside a list`)
    return (value) => value === element
  }
  const [entry, ...more] = Object.entries(element)
  if (entry === undefined || more.length > 0) throw new PatternError(`${path}: only one operator allowed in {...}`)
  const [operator, operand] = entry
  if (operator === 'exists') {
    if (typeof operand !== 'boolean') throw new PatternError(`${path}: exists takes true or false`)
    return (value) => (value !== undefined) === operand
  }
  if (operator === 'numeric') return numeric(operand, path)
  if (operator === 'anything-but') return anythingBut(operand, path)
  return strings(operator, operand, path)
}

function strings(operator: string, operand: unknown, path: string): Matcher {
  if (operator === 'prefix' || operator === 'suffix') {
    const ignoreCase = isObject(operand)
    const part = string(ignoreCase ? operand['equals-ignore-case'] : operand, operator, path)
    const fold = (text: string) => (ignoreCase ? text.toLowerCase() : text)
    return onText((text) => (operator === 'prefix' ? fold(text).startsWith(fold(part)) : fold(text).endsWith(fold(part))))
  }
  if (operator === 'equals-ignore-case') {
    const wanted = string(operand, operator, path).toLowerCase()
    return onText((text) => text.toLowerCase() === wanted)
  }
  if (operator === 'wildcard') {
    const expression = wildcard(string(operand, operator, path), path)
    return onText((text) => expression.test(text))
  }
  if (operator === 'cidr') return cidr(string(operand, operator, path), path)
  throw new PatternError(`${path}: unrecognized match type ${operator}`)
}

function anythingBut(operand: unknown, path: string): Matcher {
  const refused = isObject(operand)
    ? Object.entries(operand).flatMap(([operator, value]) => {
        const values: unknown[] = Array.isArray(value) ? value : [value]
        return values.map((one) => strings(operator, one, path))
      })
    : (Array.isArray(operand) ? operand : [operand]).map((one: unknown): Matcher => {
        if (typeof one !== 'string' && typeof one !== 'number')
          throw new PatternError(`${path}: anything-but takes strings and numbers`)
        return (value) => value === one
      })
  if (refused.length === 0) throw new PatternError(`${path}: anything-but is empty`)
  return (value) => value !== undefined && !refused.some((matches) => matches(value))
}

function numeric(operand: unknown, path: string): Matcher {
  const parts: unknown[] = Array.isArray(operand) ? operand : []
  if (parts.length !== 2 && parts.length !== 4) throw new PatternError(`${path}: numeric takes one or two comparisons`)
  const tests = [parts.slice(0, 2), parts.slice(2)].filter((pair) => pair.length === 2)
  const compiled = tests.map(([comparison, bound]): ((value: number) => boolean) => {
    if (typeof bound !== 'number') throw new PatternError(`${path}: numeric compares with numbers`)
    if (comparison === '=') return (value) => value === bound
    if (comparison === '<') return (value) => value < bound
    if (comparison === '<=') return (value) => value <= bound
    if (comparison === '>') return (value) => value > bound
    if (comparison === '>=') return (value) => value >= bound
    throw new PatternError(`${path}: unrecognized numeric operator ${String(comparison)}`)
  })
  return (value) => typeof value === 'number' && compiled.every((test) => test(value))
}

function wildcard(glob: string, path: string): RegExp {
  if (glob.includes('**')) throw new PatternError(`${path}: consecutive wildcard characters`)
  // `\*` is an asterisk, `\\` a backslash
  const source = glob.replace(/\\[*\\]|[.*+?^${}()|[\]\\]/g, (part) =>
    part === '*' ? '[^]*' : part.length === 2 ? part : `\\${part}`,
  )
  return new RegExp(`^${source}$`)
}

function cidr(block: string, path: string): Matcher {
  const [net = '', bits] = block.split('/')
  const family = isIPv6(net) ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  try {
    list.addSubnet(net, Number(bits), family)
  } catch {
    throw new PatternError(`${path}: malformed CIDR ${block}`)
  }
  return onText((text) => {
    try {
      return list.check(text, family)
    } catch {
      return false
    }
  })
}

function onText(test: (text: string) => boolean): Matcher {
  return (value) => typeof value === 'string' && test(value)
}

function string(operand: unknown, operator: string, path: string): string {
  if (typeof operand !== 'string') throw new PatternError(`${path}: ${operator} takes a string`)
  return operand
}
