import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { changedSince, currentSchema, readReleasedSchema } from '../../scripts/freeze-migrations.js'

const released = readReleasedSchema()
const current = currentSchema()

describe(`the schema of release ${released.release}`, () => {
  test.each(Object.entries(released.migrations))('still has %s as it was released', (name, checksum) => {
    expect(
      current.migrations[name],
      `${name} was released with ${released.release} and must stay as it is: databases have it, the migrator refuses another text, ` +
        `and a change would reach new databases alone. Put it back, and add a migration with the next number that makes the change`,
    ).toBe(checksum)
  })

  test.each(Object.entries(released.functions))('still has %s with these parameters and this answer', (name, signature) => {
    expect(
      current.functions[name],
      `${name} was released with ${released.release}: relays of that release call it with these parameters and read this answer while, ` +
        `and after, a newer schema is installed. (Its body may change.) Put it back, and give the other form a new name, ${name}_2; the old one ` +
        `stays for a release`,
    ).toBe(signature)
  })

  test('was recorded whole, by the release that the package has', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string }
    // between two releases there may be more than was recorded
    if (version !== released.release) return
    expect(current, 'before a release: npx tsx scripts/freeze-migrations.ts').toEqual(released)
  })
})

test('whatever was changed since a release is named', () => {
  const before = {
    release: '0.1.0',
    migrations: { '0001-meta.sql': 'a', 'inbox.sql': 'b' },
    functions: { outbox_claim: '()', gone: '()' },
  }
  const now = {
    release: '0.2.0',
    migrations: { '0001-meta.sql': 'a', 'inbox.sql': 'c', '0002-more.sql': 'd' },
    functions: { outbox_claim: '(p_new integer)', outbox_more: '()' },
  }
  expect(changedSince(before, now)).toEqual(['inbox.sql', 'outbox_claim', 'gone'])
})
