import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { exampleConfig, exampleTemplate } from './synthesis.js'

const folder = mkdtempSync(path.join(tmpdir(), 'outbox-app-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

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

function run(args: readonly string[], environment: NodeJS.ProcessEnv = offline): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8')
      child[stream].on('data', (text: string) => (output[stream] += text))
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...output }))
  })
}

const synth = (outdir: string, ...more: readonly string[]) =>
  run(['node_modules/aws-cdk/bin/cdk', 'synth', '--quiet', '--output', path.join(folder, outdir), ...more])

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
const app = (context: Readonly<Record<string, unknown>>) =>
  run(['--import', 'tsx', 'bin/app.ts'], {
    ...offline,
    CDK_OUTDIR: path.join(folder, 'app'),
    CDK_CONTEXT_JSON: JSON.stringify(context),
  })

describe('npx cdk synth', () => {
  it(
    'works offline and without credentials, in the way of the tests, and breaks no rule of CloudFormation',
    { timeout: 120_000 },
    async () => {
      const { code, stderr } = await synth('first')
      expect(code, stderr).toBe(0)
      const template = readFileSync(path.join(folder, 'first', 'outbox-relay-orders.template.json'), 'utf8')
      expect(withoutMetadata(JSON.parse(template))).toEqual(withoutMetadata(exampleTemplate().toJSON()))
      expect(violations('first')).toEqual([])
    },
  )

  it('takes the configuration of a file named on the command line', { timeout: 120_000 }, async () => {
    const file = path.join(folder, 'other.json')
    writeFileSync(file, JSON.stringify({ ...exampleConfig(), installation: 'other_shop' }))
    expect(await synth('other', '-c', `config=${file}`)).toMatchObject({ code: 0 })
    expect(readdirSync(path.join(folder, 'other'))).toContain('outbox-relay-other-shop.template.json')
  })
})

describe('a mistake in the configuration ends the app with exit code 1 and one line', () => {
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
