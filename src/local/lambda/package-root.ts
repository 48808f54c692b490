import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OutboxError } from '../../core/errors.js'

/** The directory of this package, wherever this file lies in it: the sources and `dist/esm` have different depths. */
function packageRoot(): string {
  for (let directory = dirname(fileURLToPath(import.meta.url)); ; directory = dirname(directory)) {
    const manifest = join(directory, 'package.json')
    if (existsSync(manifest) && (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }).name === 'aurora-outbox-relay')
      return directory
    if (dirname(directory) === directory)
      throw new OutboxError('PackageIncomplete', 'the package aurora-outbox-relay has no package.json')
  }
}

/** The path of a file that `npm run build` makes. */
export function builtFile(...path: readonly string[]): string {
  const file = join(packageRoot(), 'dist', ...path)
  if (!existsSync(file)) throw new OutboxError('NotBuilt', `${['dist', ...path].join('/')} is missing: npm run build`)
  return file
}

/**
 * The bundle of a handler: that of `npm run build`, or of the directory that `OUTBOX_HANDLERS` names, which has one directory for
 * each handler, as they were put into a deployment.
 */
export function handlerBundle(handler: string): string {
  const directory = process.env['OUTBOX_HANDLERS']
  if (directory === undefined) return builtFile('lambdas', handler, 'index.mjs')
  const file = resolve(directory, handler, 'index.mjs')
  if (!existsSync(file))
    throw new OutboxError('NotBuilt', `OUTBOX_HANDLERS is "${directory}", where there is no ${handler}/index.mjs`)
  return file
}
