import { DataApiFault } from './fault.js'
import type { DataApiLimits } from './limits.js'
import { TIMESTAMPTZ, type FieldKind, type ResultType } from './result-types.js'

export interface ResultColumn {
  readonly name: string
  readonly typeId: number
  readonly type: ResultType
}

export interface ResultOptions {
  readonly longReturnType: 'LONG' | 'STRING'
  readonly decimalReturnType: 'STRING' | 'DOUBLE_OR_LONG'
}

/** Values as PostgreSQL wrote them. */
export type TextRow = readonly (string | null)[]

/** Refuses what the Data API does not return: types it does not know, rows or answers that are too large. */
export function checkResult(columns: readonly ResultColumn[], rows: readonly TextRow[], limits: DataApiLimits): void {
  for (const { type } of columns) {
    if (type.kind === undefined) {
      throw new DataApiFault('UnsupportedResultException', `The result contains the unsupported data type ${type.name}.`)
    }
  }
  let bytes = 0
  for (const row of rows) {
    const rowBytes = row.reduce((sum, text, index) => sum + valueBytes(text, columns[index]?.type.kind), 0)
    bytes += rowBytes
    if (rowBytes > limits.maxRowBytes) {
      throw new DataApiFault('UnsupportedResultException', 'Database returned more than the allowed response size limit')
    }
    if (bytes > limits.maxResponseBytes) {
      throw new DataApiFault('UnsupportedResultException', 'Database response exceeded size limit')
    }
  }
}

/** As JSON text, put together by hand: a JavaScript number would lose digits of an int8. */
export function encodeRecords(columns: readonly ResultColumn[], rows: readonly TextRow[], options: ResultOptions): string {
  const encoders = columns.map((column) => fieldEncoder(column, options))
  const records = rows.map((row) => `[${row.map((text, index) => field(text, encoders[index])).join(',')}]`)
  return `[${records.join(',')}]`
}

/** The value of `formattedRecords`: a JSON text with one object a row. */
export function formatRecords(columns: readonly ResultColumn[], rows: readonly TextRow[], options: ResultOptions): string {
  const encoders = columns.map((column) => valueEncoder(column, options))
  const names = columns.map(({ name }) => JSON.stringify(name))
  const record = (row: TextRow) =>
    row.map((text, index) => `${names[index] ?? ''}:${text === null ? 'null' : (encoders[index]?.encode(text) ?? '')}`).join(',')
  return `[${rows.map((row) => `{${record(row)}}`).join(',')}]`
}

function valueBytes(text: string | null, kind: FieldKind | undefined): number {
  if (text === null) return 0
  return kind === 'blob' ? (text.length - 2) / 2 : Buffer.byteLength(text)
}

type Encode = (text: string) => string

function field(text: string | null, encode: Encode | undefined): string {
  return text === null || encode === undefined ? '{"isNull":true}' : encode(text)
}

function fieldEncoder(column: ResultColumn, options: ResultOptions): Encode {
  const { member, encode } = valueEncoder(column, options)
  if (column.type.kind !== 'array') return (text) => `{"${member}":${encode(text)}}`
  const { member: elements } = ARRAYS[column.type.element ?? 'string']
  return (text) => `{"${member}":{"${elements}":${encode(text)}}}`
}

function valueEncoder(
  { typeId, type }: ResultColumn,
  { longReturnType, decimalReturnType }: ResultOptions,
): { readonly member: string; readonly encode: Encode } {
  switch (type.kind) {
    case 'boolean':
      return { member: 'booleanValue', encode: encodeBoolean }
    case 'long':
      return longReturnType === 'LONG' ? { member: 'longValue', encode: (text) => text } : STRING
    case 'double':
      return { member: 'doubleValue', encode: encodeDouble }
    case 'decimal':
      if (decimalReturnType === 'STRING') return STRING
      return { member: 'doubleValue', encode: encodeDouble }
    case 'blob':
      return { member: 'blobValue', encode: (text) => `"${Buffer.from(text.slice(2), 'hex').toString('base64')}"` }
    case 'array':
      return { member: 'arrayValue', encode: (text) => encodeArray(text, type.element ?? 'string') }
    case 'string':
    case undefined:
      return typeId === TIMESTAMPTZ ? { member: 'stringValue', encode: encodeUtc } : STRING
  }
}

const STRING = { member: 'stringValue', encode: (text: string) => JSON.stringify(text) }

const encodeBoolean: Encode = (text) => (text === 't' ? 'true' : 'false')

const encodeDouble: Encode = (text) => (Number.isFinite(Number(text)) ? String(Number(text)) : `"${text}"`)

/** The session is in UTC, and the service leaves out the zone: `2024-03-10 11:49:00+00` becomes `2024-03-10 11:49:00`. */
const encodeUtc: Encode = (text) => JSON.stringify(text.replace(/\+00$/, ''))

const ARRAYS = {
  boolean: { member: 'booleanValues', encode: encodeBoolean },
  long: { member: 'longValues', encode: (text: string) => text },
  double: { member: 'doubleValues', encode: encodeDouble },
  string: { member: 'stringValues', encode: (text: string) => JSON.stringify(text) },
} as const

/** `{1,2,"a b",NULL}`, PostgreSQL's way of writing an array of one dimension. */
function encodeArray(text: string, element: keyof typeof ARRAYS): string {
  const { encode } = ARRAYS[element]
  const elements = [...text.matchAll(/[{,](?:"((?:[^"\\]|\\[^])*)"|([^{},"]+))/g)].map(([, quoted, plain]) => {
    if (quoted !== undefined) return encode(quoted.replaceAll(/\\([^])/g, '$1'))
    if (plain === undefined || plain === 'NULL') {
      throw new DataApiFault('UnsupportedResultException', 'The result contains an array with a null.')
    }
    return encode(plain)
  })
  if (/^(\[|\{\{)/.test(text))
    throw new DataApiFault('UnsupportedResultException', 'The result contains a multidimensional array.')
  return `[${elements.join(',')}]`
}
