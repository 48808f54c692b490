import { expect, it } from 'vitest'
import { exampleStack, exampleTemplate } from './synthesis.js'
import { Template } from 'aws-cdk-lib/assertions'

/** Hashes of code change with the code; the shape of the stack must not. */
const masked = (template: Template): unknown =>
  JSON.parse(
    JSON.stringify(template.toJSON())
      .replace(/[0-9a-f]{64}(?=\.zip)/g, '<asset>')
      .replace(/(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}/g, '$1<version>'),
  )

it('the stack of the example configuration has the shape that was reviewed', () => {
  expect(masked(exampleTemplate())).toMatchSnapshot()
})

it('two syntheses of one configuration are identical, hashes included', () => {
  expect(JSON.stringify(Template.fromStack(exampleStack()).toJSON())).toBe(JSON.stringify(exampleTemplate().toJSON()))
})
