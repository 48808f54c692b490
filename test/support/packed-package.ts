import { execFile, type ExecFileOptions } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

export type ModuleKind = 'esm' | 'cjs'

/** What `npm publish` would upload. */
export interface PackedPackage {
  readonly tarball: string
  readonly bytes: number
  readonly files: readonly string[]
}

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A project with the package unpacked in its `node_modules`, as npm would leave it. */
export interface Project {
  readonly folder: string
  /** Of the package. */
  readonly packageFolder: string
  /** Runs a program with the names imported or required; `body` is that of an async function. */
  run(kind: ModuleKind, imports: Readonly<Record<string, readonly string[]>>, body: string): Promise<Ended>
  /** Runs Node.js with these arguments in the project's folder. */
  node(...args: readonly string[]): Promise<Ended>
  /** Runs a command of the package by the link that npm makes. */
  command(name: string, ...args: readonly string[]): Promise<Ended>
}

/** Builds and packs, without a registry, into `folder`. */
export async function packPackage(folder: string): Promise<PackedPackage> {
  await run(process.execPath, [path.join(root, 'scripts/build-package.mjs')])
  const env = { ...process.env, npm_config_cache: path.join(folder, 'npm'), npm_config_offline: 'true' }
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], { cwd: root, env })
  type Packed = { readonly filename: string; readonly size: number; readonly files: readonly { readonly path: string }[] }
  // npm 12 answers an object by name, older ones an array
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, Packed>)
  if (packed === undefined) throw new Error(`npm pack answered ${stdout}`)
  return {
    tarball: path.join(folder, packed.filename),
    bytes: packed.size,
    files: packed.files.map((file) => file.path),
  }
}

/** `installed`: the packages beside it, links to those of the repository; everything that these need is found from there. */
export async function createProject(folder: string, tarball: string, installed: readonly string[]): Promise<Project> {
  const modules = path.join(folder, 'node_modules')
  const packageFolder = path.join(modules, 'aurora-outbox-relay')
  await mkdir(packageFolder, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', packageFolder, '--strip-components=1'])
  await writeFile(path.join(folder, 'package.json'), '{ "private": true }')
  for (const name of installed) {
    await mkdir(path.dirname(path.join(modules, name)), { recursive: true })
    await symlink(path.join(root, 'node_modules', name), path.join(modules, name))
  }
  const { bin } = JSON.parse(await readFile(path.join(packageFolder, 'package.json'), 'utf8')) as { bin: Record<string, string> }
  await mkdir(path.join(modules, '.bin'))
  for (const [name, file] of Object.entries(bin)) await symlink(path.join(packageFolder, file), path.join(modules, '.bin', name))

  const env = environment(path.dirname(folder))
  let programs = 0
  return {
    folder,
    packageFolder,
    run: async (kind, imports, body) => {
      const file = path.join(folder, `program-${++programs}.${kind === 'esm' ? 'mjs' : 'cjs'}`)
      const lines = Object.entries(imports).map(([from, names]) =>
        kind === 'esm' ? `import { ${names.join(', ')} } from '${from}'` : `const { ${names.join(', ')} } = require('${from}')`,
      )
      await writeFile(file, `${lines.join('\n')}\nasync function main() {\n${body}\n}\nvoid main()\n`)
      return ended(process.execPath, [file], { cwd: folder, env })
    },
    node: (...args) => ended(process.execPath, args, { cwd: folder, env }),
    command: (name, ...args) => ended(path.join(modules, '.bin', name), args, { cwd: folder, env }),
  }
}

/** Nothing of this process's AWS or outbox settings; temporary files beside the projects. */
function environment(temporary: string): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !/^(AWS|OUTBOX)_/.test(name))
  return {
    ...Object.fromEntries(own),
    TMPDIR: temporary,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
    CDK_VALIDATION: 'false',
    // nothing answers there
    HTTP_PROXY: 'http://127.0.0.1:9',
    HTTPS_PROXY: 'http://127.0.0.1:9',
  }
}

/** Runs a program to its end, however it ends. */
export function ended(file: string, args: readonly string[], options: ExecFileOptions = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { ...options, encoding: 'utf8', maxBuffer: 16 * 2 ** 20 }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    )
  })
}
