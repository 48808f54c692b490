// Builds what only the published package has, beside the rest of dist/: `npm run build:package` (npm runs it before it packs).
//   dist/cjs/            what the exports reach, as CommonJS
//   dist/{esm,cjs}/      the types of the exports, for either kind of module
// File by file as dist/esm is, not a bundle for each export: `instanceof SqlError` holds for the inbox's and the writer's.
import { rm } from 'node:fs/promises'
import path from 'node:path'
import ts from 'typescript'
import { build, entryPoints, filesIn, reachedFrom, replaceFile, root, transpile } from './build.mjs'

/** CommonJS has no `import.meta`, by which files of the package are found. */
const ownUrl = {
  define: { 'import.meta.url': '__ownUrl' },
  banner: "const __ownUrl = require('node:url').pathToFileURL(__filename).href;",
}

async function writeCommonJs() {
  const sources = await reachedFrom(Object.values(entryPoints))
  const written = await Promise.all(
    sources.map(async (source) => {
      const plain = await transpile(source, { format: 'cjs', define: ownUrl.define })
      const code = plain.includes('__ownUrl') ? await transpile(source, { format: 'cjs', ...ownUrl }) : plain
      const file = path.join('dist/cjs', source.replace(/\.ts$/, '.js'))
      await replaceFile(file, code)
      return file
    }),
  )
  await replaceFile('dist/cjs/package.json', '{ "type": "commonjs" }\n')
  await removeOthers('dist/cjs', '.js', written)
}

async function writeTypes() {
  const declarations = emitDeclarations()
  for (const folder of ['dist/esm', 'dist/cjs']) {
    const written = await Promise.all(
      [...declarations].map(async ([source, text]) => {
        const file = path.join(folder, source.replace(/\.ts$/, '.d.ts'))
        await replaceFile(file, text)
        return file
      }),
    )
    await removeOthers(folder, '.d.ts', written)
  }
}

/**
 * The types of the exports and of what they mention, not of everything inside.
 *
 * @returns {Map<string, string>} text by source, e.g. `src/writer/index.ts`
 */
function emitDeclarations() {
  const { config } = ts.readConfigFile(path.join(root, 'lib/tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, path.join(root, 'lib'))
  const program = ts.createProgram({
    rootNames: Object.values(entryPoints).map((source) => path.join(root, source)),
    options: {
      ...options,
      noEmit: false,
      incremental: false,
      tsBuildInfoFile: undefined,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: root,
    },
  })
  const texts = new Map()
  const follow = (source) => {
    if (texts.has(source)) return
    const file = program.getSourceFile(path.join(root, source))
    const { diagnostics } = program.emit(file, (_, text) => texts.set(source, text), undefined, true)
    if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, diagnosticsHost))
    for (const { fileName } of ts.preProcessFile(texts.get(source)).importedFiles) {
      if (fileName.startsWith('.')) follow(path.join(path.dirname(source), fileName.replace(/\.js$/, '.ts')))
    }
  }
  Object.values(entryPoints).forEach(follow)
  return texts
}

const diagnosticsHost = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' }

async function removeOthers(folder, extension, files) {
  const stale = (await filesIn(folder, extension)).filter((file) => !files.includes(file))
  await Promise.all(stale.map((file) => rm(path.join(root, file), { force: true })))
}

try {
  await Promise.all([build(), writeCommonJs(), writeTypes()])
} catch (error) {
  console.error(`build failed: ${error.message}`)
  process.exitCode = 1
}
