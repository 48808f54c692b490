import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Template } from 'aws-cdk-lib/assertions'
import { afterAll, describe, expect, it } from 'vitest'
import { OutboxRelayStack } from '../../lib/outbox-relay-stack.js'
import { parseStackConfig } from '../../lib/stack-config.js'
import { exampleConfig, temporaryApp } from './synthesis.js'

/** Where `OUTBOX_SYNTH` says: kept there, for .ci/run to check further. */
const kept = process.env['OUTBOX_SYNTH']
const folder = kept ?? mkdtempSync(path.join(tmpdir(), 'outbox-app-'))
afterAll(() => {
  if (kept === undefined) rmSync(folder, { recursive: true, force: true })
})

/** No credentials, no region, no home with a profile in it, and a network on which nothing answers. */
const offline = {
  PATH: process.env.PATH,
  HOME: folder,
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  AWS_EC2_METADATA_DISABLED: 'true',
}

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = offline): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8')
      child[stream].on('data', (text: string) => (output[stream] += text))
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...output }))
  })
}

/**
 * The seconds of processor time are those of all that it started: on a busy machine the clock tells what else runs there. A
 * machine with nothing else to do takes no longer than that.
 */
async function synth(outdir: string, ...more: readonly string[]): Promise<Run & { readonly seconds: number }> {
  const cdk = [
    process.execPath,
    'node_modules/aws-cdk/bin/cdk',
    'synth',
    '--quiet',
    '--output',
    path.join(folder, outdir),
    ...more,
  ]
  const result = await run('bash', ['-c', '"$@" >&2; code=$?; times; exit $code', 'synth', ...cdk])
  const [, children = ''] = result.stdout.trim().split('\n')
  const times = [...children.matchAll(/(\d+)m([\d.]+)s/g)].map(([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds))
  return { ...result, seconds: times.reduce((sum, time) => sum + time, 0) }
}

/** The command line adds paths of assets and constructs, for people. */
const withoutMetadata = (template: unknown): unknown =>
  JSON.parse(JSON.stringify(template, (key, value: unknown) => (key === 'Metadata' ? undefined : value)))

/** What the CDK's own rules found in the templates. */
function violations(outdir: string): readonly unknown[] {
  const report = JSON.parse(readFileSync(path.join(folder, outdir, 'validation-report.json'), 'utf8')) as {
    readonly pluginReports: readonly { readonly pluginName: string; readonly violations: readonly unknown[] }[]
  }
  return report.pluginReports.flatMap(({ violations: found }) => found)
}

/** What the CDK hands to the app. */
const app = (context: Readonly<Record<string, unknown>>, environment: NodeJS.ProcessEnv = {}) =>
  run(process.execPath, ['--import', 'tsx', 'bin/app.ts'], {
    ...offline,
    ...environment,
    CDK_OUTDIR: path.join(folder, 'app'),
    CDK_CONTEXT_JSON: JSON.stringify(context),
  })

const examples = readdirSync('examples/config')

describe('npx cdk synth', () => {
  it.each(examples)(
    'of examples/config/%s works offline, without credentials, within 30 s, and breaks no rule of CloudFormation',
    { timeout: 300_000 },
    async (name) => {
      const file = path.join('examples/config', name)
      // the one that cdk.json names needs no word on the command line
      const { code, stderr, seconds } = await synth(name, ...(name === 'existing-cluster.json' ? [] : ['-c', `config=${file}`]))
      expect(code, stderr).toBe(0)
      expect(stderr).not.toMatch(/warning|error/i)
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThan(30)
      expect(violations(name)).toEqual([])

      const config = parseStackConfig(JSON.parse(readFileSync(file, 'utf8')))
      const id = `outbox-relay-${config.installation}`
      const template = readFileSync(path.join(folder, name, `${id}.template.json`), 'utf8')
      // a new cluster goes where the command thinks it is, and this is what it thinks without credentials and region
      const env = config.cluster.create === undefined ? {} : { env: { region: 'us-east-1' } }
      const inTests = Template.fromStack(new OutboxRelayStack(temporaryApp(), id, { config, ...env }))
      expect(withoutMetadata(JSON.parse(template))).toEqual(withoutMetadata(inTests.toJSON()))
      const manifest = readFileSync(path.join(folder, name, 'manifest.json'), 'utf8')
      expect(JSON.parse(manifest)).not.toHaveProperty('missing')
    },
  )
})

describe('the app', { timeout: 300_000 }, () => {
  it('names the stack after the installation', async () => {
    const file = path.join(folder, 'other.json')
    writeFileSync(file, JSON.stringify({ ...exampleConfig(), installation: 'other_shop' }))
    expect(await app({ config: file })).toMatchObject({ code: 0 })
    expect(readdirSync(path.join(folder, 'app'))).toContain('outbox-relay-other-shop.template.json')
  })

  it('brings a new cluster to where the credentials lead, and goes with an existing one', async () => {
    const environmentOf = async (config: unknown, installation: string): Promise<unknown> => {
      const credentials = { CDK_DEFAULT_ACCOUNT: '444455556666', CDK_DEFAULT_REGION: 'eu-west-1' }
      expect(await app({ config }, credentials)).toMatchObject({ code: 0 })
      const manifest = JSON.parse(readFileSync(path.join(folder, 'app', 'manifest.json'), 'utf8')) as {
        readonly artifacts: Readonly<Record<string, { readonly environment?: unknown }>>
      }
      return manifest.artifacts[`outbox-relay-${installation}`]?.environment
    }
    expect(await environmentOf('examples/config/minimal.json', 'shop')).toBe('aws://444455556666/eu-west-1')
    expect(await environmentOf('examples/config/existing-cluster.json', 'orders')).toBe('aws://111122223333/eu-central-1')
  })
})

describe('a mistake in the configuration ends the app with exit code 1 and one line', { timeout: 300_000 }, () => {
  const line = (reason: string) => ({ code: 1, stdout: '', stderr: `Configuration error: ${reason}\n` })

  it('for a wrong property', async () => {
    expect(await app({ config: { ...exampleConfig(), default: 'main' } })).toEqual(
      line('default is "main", which is not a destination. Configured are: bus, billing, shipping. Add it or correct the name'),
    )
  })

  it('for no configuration at all', async () => {
    expect(await app({})).toEqual(line('config is not set. Give a file: npx cdk synth -c config=FILE'))
  })

  it('for a file that is not there', async () => {
    expect(await app({ config: 'nowhere.json' })).toEqual(line('config: the file "nowhere.json" cannot be read'))
  })

  it('for a file that is not JSON', async () => {
    const file = path.join(folder, 'broken.json')
    writeFileSync(file, '{ "installation": ')
    const { code, stderr } = await app({ config: file })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Configuration error: config: the file ".*broken\.json" is not JSON \(.*\)\n$/)
  })
})
