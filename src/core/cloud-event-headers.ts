/** Attributes of CloudEvents 1.0, and ours: no header may take their place. */
const RESERVED = new Set([
  'specversion',
  'id',
  'source',
  'type',
  'time',
  'subject',
  'datacontenttype',
  'dataschema',
  'data',
  'partitionkey',
  'eventversion',
])

/** CloudEvents 1.0: attribute names should not exceed 20 characters. */
const NAME_CHARACTERS = 20

/** Headers as CloudEvents extension attributes. */
export interface ReducedHeaders {
  /** Reduced name -> value, in the order of the headers. */
  readonly attributes: ReadonlyMap<string, string>
  /** Headers that are not among them. */
  readonly dropped: number
}

/**
 * Reduces an event's headers to CloudEvents extension attributes: of a name only letters and digits of ASCII remain, in lower
 * case, the first 20 (`X-Correlation-Id` -> `xcorrelationid`). Dropped, and counted: a header whose name leaves nothing, or
 * is then an attribute of CloudEvents or ours, or that of an earlier header; and one whose value is not a string (its JSON
 * text could not be had without risking digits of a number). Headers that are no JSON object, which the table's CHECK
 * forbids, count as one.
 *
 * @param headers - the column as it is: JSON text, or null
 */
export function reduceHeaders(headers: string | null): ReducedHeaders {
  const attributes = new Map<string, string>()
  if (headers === null) return { attributes, dropped: 0 }
  const parsed = parseObject(headers)
  if (parsed === null) return { attributes, dropped: 1 }
  let dropped = 0
  for (const [header, value] of Object.entries(parsed)) {
    const name = reduceName(header)
    if (name === '' || typeof value !== 'string' || RESERVED.has(name) || attributes.has(name)) {
      dropped += 1
    } else {
      attributes.set(name, value)
    }
  }
  return { attributes, dropped }
}

/** What a header is called once it is an attribute. */
export function reduceName(header: string): string {
  return header
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, NAME_CHARACTERS)
    .toLowerCase()
}

function parseObject(json: string): object | null {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
