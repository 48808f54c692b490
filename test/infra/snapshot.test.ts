import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Template } from 'aws-cdk-lib/assertions'
import { expect, it } from 'vitest'
import { OutboxRelayStack, parseStackConfig } from '../../lib/index.js'
import { exampleTemplate, temporaryApp } from './synthesis.js'

/** Hashes of code change with the code; the shape of the stack must not. */
const masked = (template: Template): unknown =>
  JSON.parse(
    JSON.stringify(template.toJSON())
      .replace(/[0-9a-f]{64}(?=\.zip)/g, '<asset>')
      .replace(/(?<="Release":")[0-9a-f]{64}/g, '<release>'),
  )

it('the stack of the example configuration has the shape that was reviewed', () => {
  expect(masked(exampleTemplate())).toMatchSnapshot()
})

const configs = readdirSync('examples/config').filter((name) => name.endsWith('.json'))

it.each(configs)('two syntheses of examples/config/%s are identical, hashes included', (name) => {
  const synthesis = (): string => {
    const config = parseStackConfig(JSON.parse(readFileSync(path.join('examples/config', name), 'utf8')))
    const stack = new OutboxRelayStack(temporaryApp(), 'outbox-relay', { config })
    return JSON.stringify(Template.fromStack(stack).toJSON())
  }
  expect(synthesis()).toBe(synthesis())
})
