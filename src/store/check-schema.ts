import { SqlError } from '../core/errors.js'
import type { OutboxMeta, OutboxStore, SqlCallOptions } from '../core/ports.js'

/** The number of the newest migration of this release: the relay runs on this schema, or a later one that admits it. */
export const schemaVersion = 5

export type SchemaCheck = { readonly ok: true } | { readonly ok: false; readonly reason: string }

/** What a handler is, and what it expects. */
export interface SchemaExpectation {
  /** Of this package, e.g. `1.4.0`; what follows the third number is ignored. */
  readonly relayVersion: string
  readonly installation: string
  readonly schema: string
}

/**
 * Whether a relay may run on this outbox; if not, why, in one line. `meta` null: there is no outbox.
 *
 * @example
 * checkSchema(await store.meta(), { relayVersion: '0.1.0', installation: 'orders', schema: 'public' })
 */
export function checkSchema(meta: OutboxMeta | null, { relayVersion, installation, schema }: SchemaExpectation): SchemaCheck {
  if (meta === null) return refuse(`schema "${schema}" has no outbox: run the migration (aurora-outbox-relay migrate)`)
  if (isOlder(relayVersion, meta.minRelayVersion)) {
    return refuse(
      `the outbox in schema "${schema}" is too new: it needs relay ${meta.minRelayVersion} or later, this is ${relayVersion}; deploy the newer release`,
    )
  }
  if (meta.schemaVersion < schemaVersion) {
    return refuse(
      `the outbox in schema "${schema}" has schema version ${meta.schemaVersion}, this release needs ${schemaVersion}: run the migration (aurora-outbox-relay migrate)`,
    )
  }
  if (meta.installation !== null && meta.installation !== installation) {
    return refuse(
      `the outbox in schema "${schema}" is served by installation "${meta.installation}", so "${installation}" must not deliver from it`,
    )
  }
  return { ok: true }
}

/** Reads `outbox_meta` and checks it. Throws `SqlError` for anything but a missing outbox or missing rights on it. */
export async function readSchemaCheck(
  store: Pick<OutboxStore, 'meta'>,
  expectation: SchemaExpectation,
  options?: SqlCallOptions,
): Promise<SchemaCheck> {
  try {
    return checkSchema(await store.meta(options), expectation)
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    // undefined_table, invalid_schema_name
    if (error.sqlState === '42P01' || error.sqlState === '3F000') return checkSchema(null, expectation)
    if (error.sqlState !== '42501') throw error
    return refuse(
      `the database user may not read the outbox in schema "${expectation.schema}": grant it outbox_relay, outbox_cleanup, outbox_monitor or outbox_operator`,
    )
  }
}

const refuse = (reason: string): SchemaCheck => ({ ok: false, reason })

/** By the three numbers; what follows them is ignored. */
export function isOlder(version: string, other: string): boolean {
  const [x, y] = [numbers(version), numbers(other)]
  return (x.major - y.major || x.minor - y.minor || x.patch - y.patch) < 0
}

function numbers(version: string): { readonly major: number; readonly minor: number; readonly patch: number } {
  const [major = 0, minor = 0, patch = 0] = version.split(/[^\d]/, 3).map(Number)
  return { major, minor, patch }
}
