/** How a column's values travel. */
export type FieldKind = 'boolean' | 'long' | 'double' | 'decimal' | 'string' | 'blob' | 'array'

export interface ResultType {
  /** PostgreSQL's name of the type. */
  readonly name: string
  /** undefined: the Data API does not return such values. */
  readonly kind: FieldKind | undefined
  /** The number in java.sql.Types; 1111 is OTHER. */
  readonly jdbcType: number
  readonly precision: number
  /** Of an array: how its elements travel. */
  readonly element?: Exclude<FieldKind, 'array' | 'blob' | 'decimal'>
}

const type = (name: string, kind: FieldKind | undefined, jdbcType: number, precision: number): ResultType => ({
  name,
  kind,
  jdbcType,
  precision,
})

const array = (name: string, element: NonNullable<ResultType['element']>): ResultType => ({
  name,
  kind: 'array',
  jdbcType: 2003,
  precision: 0,
  element,
})

const ENDLESS = 2_147_483_647

/** By type OID, which is fixed for built-in types. Those not listed are unsupported, except for enums. */
export const RESULT_TYPES: ReadonlyMap<number, ResultType> = new Map([
  [16, type('bool', 'boolean', -7, 1)],
  [17, type('bytea', 'blob', -2, ENDLESS)],
  [19, type('name', 'string', 12, 63)],
  [20, type('int8', 'long', -5, 19)],
  [21, type('int2', 'long', 5, 5)],
  [23, type('int4', 'long', 4, 10)],
  [25, type('text', 'string', 12, ENDLESS)],
  [26, type('oid', 'long', -5, 10)],
  [114, type('json', 'string', 1111, ENDLESS)],
  [700, type('float4', 'double', 7, 8)],
  [701, type('float8', 'double', 8, 17)],
  [1042, type('bpchar', 'string', 1, ENDLESS)],
  [1043, type('varchar', 'string', 12, ENDLESS)],
  [1082, type('date', 'string', 91, 13)],
  [1083, type('time', 'string', 92, 15)],
  [1114, type('timestamp', 'string', 93, 29)],
  [1184, type('timestamptz', 'string', 93, 35)],
  [1700, type('numeric', 'decimal', 2, 0)],
  [2950, type('uuid', 'string', 1111, ENDLESS)],
  [3802, type('jsonb', 'string', 1111, ENDLESS)],
  [1000, array('_bool', 'boolean')],
  [1005, array('_int2', 'long')],
  [1007, array('_int4', 'long')],
  [1016, array('_int8', 'long')],
  [1009, array('_text', 'string')],
  [1015, array('_varchar', 'string')],
  [1021, array('_float4', 'double')],
  [1022, array('_float8', 'double')],
])

export const TIMESTAMPTZ = 1184

/** A type that is not in the table: users' enums travel as strings, nothing else does. */
export function userType(name: string, isEnum: boolean): ResultType {
  return type(name, isEnum ? 'string' : undefined, isEnum ? 12 : 1111, ENDLESS)
}
