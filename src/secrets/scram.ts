import { createHash, createHmac, pbkdf2Sync, randomBytes, randomInt } from 'node:crypto'

/** What PostgreSQL itself uses. The password is not one that people choose: more rounds would buy nothing. */
const ROUNDS = 4096
const SALT_BYTES = 16
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
/** 238 bits. */
const PASSWORD_CHARACTERS = 40

/** A new password: 40 letters and digits, which need no escaping anywhere. */
export function newPassword(): string {
  return Array.from({ length: PASSWORD_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

/** Whether a verifier can be made of it here: SASLprep, which other characters would need, leaves printable ASCII as it is. */
export function isPlainPassword(password: string): boolean {
  return /^[\x20-\x7e]+$/.test(password)
}

/**
 * What PostgreSQL stores for a password (RFC 5803), so that the password itself never reaches it or a log of it.
 *
 * @param password printable ASCII (`isPlainPassword`)
 * @example
 * scramVerifier('secret') // 'SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey>'
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, ROUNDS, 32, 'sha256')
  const keyed = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(keyed('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${ROUNDS}:${salt.toString('base64')}$${storedKey}:${keyed('Server Key').toString('base64')}`
}
