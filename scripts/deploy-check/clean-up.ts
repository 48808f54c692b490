import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { messageOf } from './steps.js'

/** What was started or made, ended and removed in reverse order, whatever happened. */
export class CleanUp {
  readonly #undo: (() => Promise<unknown>)[] = []

  add(undo: () => Promise<unknown>): void {
    this.#undo.push(undo)
  }

  /** A temporary directory. */
  async directory(): Promise<string> {
    const directory = await mkdtemp(path.join(tmpdir(), 'outbox-deploy-check-'))
    // as root, PostgreSQL runs as another user, who must be able to enter it
    await chmod(directory, 0o755)
    this.add(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
    return directory
  }

  async run(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) {
      await undo().catch((error: unknown) => console.error(`clean-up: ${messageOf(error)}`))
    }
  }
}
