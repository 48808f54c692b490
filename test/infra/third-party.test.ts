import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { thirdParty } from '../../scripts/third-party.mjs'

it('THIRD-PARTY.md names what is inside the handlers now (else: node scripts/third-party.mjs)', async () => {
  expect(readFileSync('THIRD-PARTY.md', 'utf8')).toBe(await thirdParty())
})
