import { ConfigurationError } from '../../core/errors.js'

/**
 * A schema name as SQL takes it: quoted, so that a reserved word is a name too.
 *
 * Only plain lower-case names are taken, so nothing has to be escaped anywhere. Throws `ConfigurationError`.
 *
 * @example
 * quotedSchema('orders') // '"orders"'
 */
export function quotedSchema(schema: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new ConfigurationError(
      'schema',
      `schema must be a plain lower-case PostgreSQL name of at most 63 characters, not "${schema}"`,
    )
  }
  return `"${schema}"`
}
