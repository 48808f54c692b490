import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { App, Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { OutboxRelayStack } from '../../lib/outbox-relay-stack.js'
import { parseStackConfig } from '../../lib/stack-config.js'

/** A resource as a template has it. */
export interface Resource {
  readonly Type: string
  readonly Properties: Readonly<Record<string, unknown>>
  readonly DependsOn?: readonly string[]
}

/** The configuration of examples/config/existing-cluster.json, to be changed at will. */
export const exampleConfig = (): Record<string, unknown> =>
  JSON.parse(readFileSync('examples/config/existing-cluster.json', 'utf8')) as Record<string, unknown>

// CDK's own template rules take seconds to load in every file: app.test.ts runs them, by the real command
process.env.CDK_VALIDATION = 'false'

const assemblies: string[] = []

const { context } = JSON.parse(readFileSync('cdk.json', 'utf8')) as { readonly context: Record<string, unknown> }

/** An app with the flags of cdk.json, whose assembly is removed after the file's tests: remove-assemblies.ts. */
export function temporaryApp(): App {
  const outdir = mkdtempSync(path.join(tmpdir(), 'outbox-synth-'))
  assemblies.push(outdir)
  return new App({ outdir, context, analyticsReporting: false })
}

export function removeAssemblies(): void {
  for (const outdir of assemblies.splice(0)) rmSync(outdir, { recursive: true, force: true })
}

/** The stack of a configuration: the example's, with `changes` over its top level. */
export function exampleStack(changes: Readonly<Record<string, unknown>> = {}, app = temporaryApp()): OutboxRelayStack {
  const config = parseStackConfig({ ...exampleConfig(), ...changes })
  return new OutboxRelayStack(app, 'outbox-relay-orders', { config })
}

let unchanged: Template | undefined

export function exampleTemplate(changes?: Readonly<Record<string, unknown>>): Template {
  if (changes !== undefined) return Template.fromStack(exampleStack(changes))
  return (unchanged ??= Template.fromStack(exampleStack()))
}

/** A stack of somebody else's, in which the construct stands beside their resources. */
export const otherStack = (): Stack =>
  new Stack(temporaryApp(), 'shop', { env: { account: '111122223333', region: 'eu-central-1' } })

/** Every resource of a type: logical id -> resource. */
export const resourcesOf = (template: Template, type: string): Readonly<Record<string, Resource>> =>
  template.findResources(type) as Readonly<Record<string, Resource>>

/** The one resource whose logical id begins so, of a type. */
export function resource(template: Template, type: string, idBegins: string): Resource {
  const found = Object.entries(resourcesOf(template, type)).filter(([id]) => id.startsWith(idBegins))
  if (found.length !== 1) throw new Error(`${found.length} resources of type ${type} begin with ${idBegins}`)
  return found[0]![1]
}

/** The secret of a function's database user, once it is deployed. */
export const userSecretArn = (name: string): string =>
  `arn:aws:secretsmanager:eu-central-1:111122223333:secret:OutboxUsers${name}-a1B2c3`

/** The settings a function gets, with those secrets in them. */
export function environmentOf(template: Template, functionIdBegins: string): Readonly<Record<string, string>> {
  const { Variables } = resource(template, 'AWS::Lambda::Function', functionIdBegins).Properties.Environment as {
    readonly Variables: Readonly<Record<string, unknown>>
  }
  return Object.fromEntries(Object.entries(Variables).map(([name, value]) => [name, withSecrets(value)])) as Record<
    string,
    string
  >
}

function withSecrets(value: unknown): unknown {
  const { Ref, 'Fn::Join': join } = value as {
    readonly Ref?: string
    readonly 'Fn::Join'?: readonly [string, readonly unknown[]]
  }
  const [, secret] = /^OutboxUsers(\w+)[0-9A-F]{8}$/.exec(Ref ?? '') ?? []
  if (secret !== undefined) return userSecretArn(secret)
  const parts = join?.[1].map(withSecrets)
  return parts?.every((part) => typeof part === 'string') === true ? parts.join('') : value
}
