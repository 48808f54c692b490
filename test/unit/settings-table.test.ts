import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { settingsTable } from '../../scripts/settings-table.js'
import { cleanupSettings, migrateSettings, relaySettings } from '../../src/config/settings.js'

it('docs/configuration.md says what the settings catalogue says (else: npx tsx scripts/settings-table.ts)', () => {
  expect(readFileSync('docs/configuration.md', 'utf8')).toBe(settingsTable())
})

it('the table names every setting with its variable, and the range of every number', () => {
  const table = settingsTable()
  for (const [name, { env, default: value }] of Object.entries({ ...relaySettings, ...cleanupSettings, ...migrateSettings })) {
    const row = table.split('\n').find((line) => line.startsWith(`| \`${name}\` | \`${env}\` |`))
    expect(row, name).toBeDefined()
    if (typeof value === 'number') expect(row).toMatch(/ \d+ to \d+ /)
  }
  expect(table).toContain('| `passSeconds` | `OUTBOX_PASS_SECONDS` | `75` | 5 to 840 | s |')
})
