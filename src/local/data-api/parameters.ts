import { z } from 'zod'
import { DataApiFault } from './fault.js'
import { parseSqlText } from './sql-text.js'

/** Digits as text: a JavaScript number would lose those beyond 2^53. `parseBody` sees to it. */
const long = z.union([z.string().regex(/^-?\d+$/), z.int().transform(String)])

export const parameterSchema = z.object({
  name: z.string(),
  typeHint: z.enum(['DATE', 'DECIMAL', 'JSON', 'TIME', 'TIMESTAMP', 'UUID']).optional(),
  value: z.object({
    isNull: z.boolean().optional(),
    booleanValue: z.boolean().optional(),
    longValue: long.optional(),
    doubleValue: z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]).optional(),
    stringValue: z.string().optional(),
    blobValue: z.string().optional(),
    arrayValue: z.unknown().optional(),
  }),
})

export type Parameter = z.infer<typeof parameterSchema>

export interface BoundStatement {
  readonly text: string
  readonly values: readonly (string | Buffer | null)[]
}

/** The type that a hint gives to a string, and the form that the service demands where it demands one. */
const HINTS = {
  DATE: { type: 'date', form: /^\d{4}-\d\d-\d\d$/ },
  DECIMAL: { type: 'numeric', form: undefined },
  JSON: { type: 'json', form: undefined },
  TIME: { type: 'time', form: /^\d\d:\d\d:\d\d(\.\d{1,3})?$/ },
  TIMESTAMP: { type: 'timestamp', form: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,3})?$/ },
  UUID: { type: 'uuid', form: undefined },
} as const

/** Reads a request. JSON numbers of `longValue` become text on the way; in a string its quotes would be escaped. */
export function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8').replaceAll(/("longValue"\s*:\s*)(-?\d+)(?=\s*[,}])/g, '$1"$2"'))
  } catch {
    throw new DataApiFault('SerializationException', 'The request body is not JSON.')
  }
}

/**
 * Writes the statement as PostgreSQL takes it, every parameter cast to the type that its wire form has. So text does not
 * turn into a uuid or a timestamp by itself, as it would with an ordinary driver. Only null has no type.
 */
export function bindParameters(sql: string, parameters: readonly Parameter[]): BoundStatement {
  const parsed = parseSqlText(sql)
  if (parsed.strayPlaceholder !== undefined) {
    throw new DataApiFault('DatabaseErrorException', `ERROR: there is no parameter ${parsed.strayPlaceholder}; SQLState: 42P02`)
  }
  const byName = new Map(parameters.map((parameter) => [parameter.name, parameter]))
  const bound = parsed.names.map((name) => {
    const parameter = byName.get(name)
    if (parameter === undefined) throw new DataApiFault('ValidationException', `Cannot find parameter: ${name}`)
    return bind(parameter)
  })
  const text = parsed.pieces.reduce((before, piece, index) => {
    const type = bound[index - 1]?.type
    return `${before}$${index}${type === undefined ? '' : `::${type}`}${piece}`
  })
  return { text, values: bound.map(({ value }) => value) }
}

function bind({ name, typeHint, value }: Parameter): {
  readonly type: string | undefined
  readonly value: string | Buffer | null
} {
  if (value.arrayValue !== undefined) throw new DataApiFault('ValidationException', 'Array parameters are not supported.')
  if (Object.keys(value).length !== 1) {
    throw new DataApiFault('ValidationException', `Parameter ${name} must have exactly one value.`)
  }
  if (value.stringValue !== undefined) {
    if (typeHint === undefined) return { type: 'text', value: value.stringValue }
    const { type, form } = HINTS[typeHint]
    if (form !== undefined && !form.test(value.stringValue)) {
      throw new DataApiFault('ValidationException', `Parameter ${name} is not in the format of the type hint ${typeHint}.`)
    }
    return { type, value: value.stringValue }
  }
  if (value.longValue !== undefined) return { type: 'bigint', value: value.longValue }
  if (value.booleanValue !== undefined) return { type: 'boolean', value: String(value.booleanValue) }
  if (value.doubleValue !== undefined) return { type: 'float8', value: String(value.doubleValue) }
  if (value.blobValue !== undefined) return { type: 'bytea', value: Buffer.from(value.blobValue, 'base64') }
  if (value.isNull === true) return { type: typeHint === undefined ? undefined : HINTS[typeHint].type, value: null }
  throw new DataApiFault('ValidationException', `Parameter ${name} must have exactly one value.`)
}
