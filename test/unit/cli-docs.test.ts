import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { exitCodeLines } from '../../src/cli/exit-code.js'
import { runCli } from '../../src/cli/main.js'
import { fakeTerminal } from '../support/fake-terminal.js'

const document = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

async function helpOf(...args: string[]): Promise<string> {
  const terminal = fakeTerminal()
  await runCli([...args, '--help'], terminal)
  return terminal.outText().trimEnd()
}

/** The text block below the heading of a command. */
function blockOf(heading: string): string | undefined {
  return new RegExp(`^## ${heading}$[^]*?^\`\`\`text\\n([^]*?)\\n\`\`\`$`, 'm').exec(document)?.[1]
}

describe('docs/cli.md', () => {
  it.each(['local', 'demo', 'migrate', 'status', 'list', 'show', 'redrive', 'discard', 'release', 'replay', 'doctor'])(
    'shows the --help of %s as it is',
    async (name) => {
      expect(blockOf(`outbox ${name}`)).toBe(await helpOf(name))
    },
  )

  it('explains every exit code in the words of --help', () => {
    for (const line of exitCodeLines) {
      const [code = '', ...words] = line.split(/\s+/)
      expect(document).toContain(`| ${code} | ${words.join(' ')} |`)
    }
  })
})
