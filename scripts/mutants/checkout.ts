import { cp, mkdtemp, readFile, rm, symlink, writeFile, chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { CleanUp } from '../deploy-check/clean-up.js'
import { mutated, type Mutant } from './mutant.js'

const NOT_COPIED = new Set(['node_modules', 'dist', 'cdk.out', 'coverage', '.git'])

/** A copy of the checkout, as it is now, that may be broken. */
export interface Checkout {
  readonly directory: string
  /** Runs `work` while the copy has this break, and mends it. */
  whileBroken<Value>(mutant: Mutant, work: () => Promise<Value>): Promise<Value>
}

export async function copyCheckout(root: string, cleanUp: CleanUp): Promise<Checkout> {
  const directory = await mkdtemp(path.join(tmpdir(), 'outbox-mutants-'))
  cleanUp.add(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  // as root, PostgreSQL runs as another user, who must be able to enter it
  await chmod(directory, 0o755)
  await cp(root, directory, { recursive: true, filter: (source) => !NOT_COPIED.has(path.relative(root, source)) })
  await symlink(path.join(root, 'node_modules'), path.join(directory, 'node_modules'))
  return {
    directory,
    whileBroken: async (mutant, work) => {
      const file = path.join(directory, mutant.file)
      const sound = await readFile(file, 'utf8')
      await writeFile(file, mutated(mutant, sound))
      try {
        return await work()
      } finally {
        await writeFile(file, sound)
      }
    },
  }
}
