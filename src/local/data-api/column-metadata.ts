import { run, type Connection } from './connections.js'
import type { StatementResult } from './statement.js'

/** The `columnMetadata` of an answer: what the driver below the service reports of each column. */
export async function columnMetadata(connection: Connection, { fields, columns }: StatementResult): Promise<readonly unknown[]> {
  const tables = [...new Set(fields.map(({ tableID }) => tableID))].filter((id) => id !== 0)
  const origin = new Map<string, { readonly table: string; readonly notNull: boolean }>()
  if (tables.length > 0) {
    const sql = `SELECT a.attrelid::text, a.attnum::text, c.relname, a.attnotnull::text
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0`
    const found = await run(connection.client, sql, [`{${tables.join(',')}}`])
    for (const [table, column, name, notNull] of found.rows) {
      origin.set(`${table ?? ''}.${column ?? ''}`, { table: name ?? '', notNull: notNull === 'true' })
    }
  }
  return columns.map(({ name, type }, index) => {
    const field = fields[index]
    const from = origin.get(`${field?.tableID ?? 0}.${field?.columnID ?? 0}`)
    const isNumber = type.kind === 'long' || type.kind === 'double' || type.kind === 'decimal'
    return {
      arrayBaseColumnType: 0,
      isAutoIncrement: false,
      isCaseSensitive: type.kind === 'string' && type.jdbcType !== 93,
      isCurrency: false,
      isSigned: isNumber,
      label: name,
      name,
      // java.sql.ResultSetMetaData: 0 never null, 1 nullable, 2 unknown
      nullable: from === undefined ? 2 : from.notNull ? 0 : 1,
      precision: type.precision,
      scale: 0,
      schemaName: '',
      tableName: from?.table ?? '',
      type: type.jdbcType,
      typeName: type.name,
    }
  })
}
