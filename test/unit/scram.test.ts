import { describe, expect, it } from 'vitest'
import { alternateName, MAX_INSTALLATION_CHARACTERS, userName, userRoles } from '../../src/core/database-user.js'
import { isPlainPassword, newPassword, scramVerifier } from '../../src/secrets/scram.js'

describe('a SCRAM verifier', () => {
  it('is what PostgreSQL stores for the password and salt of RFC 7677', () => {
    expect(scramVerifier('pencil', Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64'))).toBe(
      'SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=',
    )
  })

  it('has a salt of its own each time', () => {
    expect(scramVerifier('pencil')).not.toBe(scramVerifier('pencil'))
  })
})

describe('a new password', () => {
  it('is 40 letters and digits, another one each time', () => {
    const passwords = Array.from({ length: 100 }, newPassword)
    for (const password of passwords) expect(password).toMatch(/^[A-Za-z0-9]{40}$/)
    expect(new Set(passwords).size).toBe(100)
    expect(passwords.every(isPlainPassword)).toBe(true)
  })

  it('may be of printable ASCII, where nothing is to be prepared before it is hashed', () => {
    expect(isPlainPassword('a b~!"\\')).toBe(true)
    for (const password of ['', 'café', 'a\nb', '\u00a0']) expect(isPlainPassword(password)).toBe(false)
  })
})

describe("a function's database user", () => {
  it('takes turns with another, whose name is as long as PostgreSQL allows where the installation is', () => {
    expect(alternateName('orders_relay')).toBe('orders_relay_2')
    expect(alternateName('orders_relay_2')).toBe('orders_relay')
    const installation = 'o'.repeat(MAX_INSTALLATION_CHARACTERS)
    const names = userRoles.map((role) => alternateName(userName(installation, role)))
    expect(Math.max(...names.map((name) => name.length))).toBe(63)
  })
})
