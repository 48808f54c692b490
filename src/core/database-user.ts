/** Functions that log in to the database as users of their own. */
export const userRoles = ['relay', 'cleanup', 'monitor', 'canary'] as const
export type UserRole = (typeof userRoles)[number]

/** One of them, with what the database keeps in place of its password. */
export interface DatabaseUser {
  readonly role: UserRole
  readonly name: string
  /** A SCRAM-SHA-256 verifier: it proves a password, and does not tell it. */
  readonly verifier: string
}

/** PostgreSQL cuts longer names off. */
export const MAX_NAME_BYTES = 63

const ALTERNATE = '_2'

/**
 * The user that takes turns with this one: a rotation gives the other a new password, and switches over when it is ready.
 *
 * @example
 * alternateName('orders_relay') // 'orders_relay_2'; and back
 */
export function alternateName(name: string): string {
  return name.endsWith(ALTERNATE) ? name.slice(0, -ALTERNATE.length) : name + ALTERNATE
}

/** The first user of a function, as a stack names it. */
export function userName(installation: string, role: UserRole): string {
  return `${installation}_${role}`
}

/** An installation's name of so many characters leaves room for the longest user's name. */
export const MAX_INSTALLATION_CHARACTERS =
  MAX_NAME_BYTES - Math.max(...userRoles.map((role) => alternateName(userName('', role)).length))
