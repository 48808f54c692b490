import { isObject, text } from '../front/protocol.js'

/** 1,000,000: "1 MB", read as strictly as it can be. */
export const MAX_REQUEST_BYTES = 1_000_000
const MAX_DETAIL_TYPE = 128
const MAX_SOURCE = 256
const MAX_DEPTH = 1000
const INT64_MAX = 9_223_372_036_854_775_807n

export interface EntryProblem {
  readonly code: string
  readonly message: string
}

/** Why EventBridge would refuse this entry; undefined if it would not. */
export function entryProblem(entry: Readonly<Record<string, unknown>>): EntryProblem | undefined {
  const invalid = (message: string) => ({ code: 'InvalidArgument', message })
  for (const field of ['Source', 'DetailType', 'Detail']) {
    if (text(entry[field]) === '') return invalid(`Parameter ${field} is not valid. Reason: ${field} is a required argument.`)
  }
  const source = text(entry['Source'])
  if (source.startsWith('aws.')) {
    return { code: 'NotAuthorizedForSourceException', message: `Not authorized for the source: ${source}.` }
  }
  if (source.length > MAX_SOURCE) return invalid(`Parameter Source is not valid. Reason: longer than ${MAX_SOURCE} characters.`)
  const detailType = text(entry['DetailType'])
  if (detailType.length > MAX_DETAIL_TYPE) {
    return invalid(
      `Parameter DetailType is not valid. Reason: ${detailType.length} characters, at most ${MAX_DETAIL_TYPE} are allowed.`,
    )
  }
  const { Time: time, Resources: resources, TraceHeader: trace } = entry
  if (time !== undefined && (typeof time !== 'number' || !Number.isFinite(time))) return invalid('Parameter Time is not valid.')
  if (
    resources !== undefined &&
    !(Array.isArray(resources) && resources.every((one) => typeof one === 'string' && one.length <= 2048))
  ) {
    return invalid('Parameter Resources is not valid. Reason: a list of strings of at most 2048 characters is expected.')
  }
  if (trace !== undefined && (typeof trace !== 'string' || trace === '' || trace.length > 500)) {
    return invalid('Parameter TraceHeader is not valid. Reason: 1 to 500 characters are expected.')
  }
  const malformed = detailProblem(text(entry['Detail']))
  return malformed === undefined ? undefined : { code: 'MalformedDetail', message: malformed }
}

/** Bytes of one entry by EventBridge's formula: 14 for a time, and the UTF-8 of its texts. */
export function entryBytes(entry: Readonly<Record<string, unknown>>): number {
  const resources: unknown[] = Array.isArray(entry['Resources']) ? entry['Resources'] : []
  const texts = [entry['Source'], entry['DetailType'], entry['Detail'], ...resources]
  return texts.reduce((sum: number, one) => sum + Buffer.byteLength(text(one)), entry['Time'] === undefined ? 0 : 14)
}

function detailProblem(detail: string): string | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(detail)
  } catch {
    return 'Detail is malformed.'
  }
  if (!isObject(parsed)) return 'Detail is malformed: it is not a JSON object.'
  return tokenProblem(detail)
}

/** Depth and integers are read from the text: JSON.parse would have rounded a large integer already. */
function tokenProblem(json: string): string | undefined {
  let depth = 0
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{[]|[}\]]|-?\d[\d.eE+-]*/g)) {
    if (token === '{' || token === '[') depth += 1
    else if (token === '}' || token === ']') depth -= 1
    else if (/^-?\d+$/.test(token) && isBeyondInt64(token))
      return `Detail is malformed: ${token.slice(0, 40)} is no 64-bit integer.`
    if (depth > MAX_DEPTH) return `Detail is malformed: more than ${MAX_DEPTH} levels.`
  }
  return undefined
}

function isBeyondInt64(digits: string): boolean {
  // 19 digits at most in 64 bits: shorter ones need no BigInt
  if (digits.length < 19) return false
  const value = BigInt(digits)
  return value > INT64_MAX || value < -INT64_MAX - 1n
}
