import { spawn, type ChildProcess } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { childrenOf, isAlive } from '../../src/local/postgres/children.js'
import type { LocalStackDescription } from '../../src/local/stack.js'

/** `outbox local --json`, as a user starts it. */
export interface LocalProcess {
  readonly pid: number
  readonly description: LocalStackDescription
  /** The whole of stdout so far. */
  stdout(): string
  /** Ids of the processes that it started and that still run. */
  children(): Promise<readonly number[]>
  /** Sends the signal, and waits for the end of it and of all that it started; answers its exit code and signal. */
  end(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  /** What it left in its temporary directory. */
  leftovers(): Promise<readonly string[]>
}

const outbox = fileURLToPath(new URL('../../dist/esm/bin/outbox.js', import.meta.url))

/** A run with the handlers of a deployment (docs/local.md) means every stack that it starts. */
const handlers = process.env['OUTBOX_HANDLERS']

const started: { readonly child: ChildProcess; readonly temporary: string }[] = []

/** Kills what a test that failed did not end, and removes the temporary directories. Call it in `afterAll`. */
export async function discardLocalProcesses(): Promise<void> {
  for (const { child, temporary } of started.splice(0)) {
    child.kill('SIGKILL')
    await rm(temporary, { recursive: true, force: true })
  }
}

/** Runs the command until it is ready. Whoever starts it ends it, and calls `discardLocalProcesses`. */
export async function startLocalProcess(...args: readonly string[]): Promise<LocalProcess> {
  const temporary = await mkdtemp(join(tmpdir(), 'outbox-local-test-'))
  // as root, PostgreSQL runs as another user, who must be able to enter it
  await chmod(temporary, 0o755)
  const child = spawn(process.execPath, [outbox, 'local', '--port', '0', '--json', ...args], {
    env: {
      PATH: process.env['PATH'],
      TMPDIR: temporary,
      HOME: process.env['HOME'],
      ...(handlers === undefined ? {} : { OUTBOX_HANDLERS: handlers }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push({ child, temporary })
  let stdout = ''
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const description = await new Promise<LocalStackDescription>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      stdout += `${line}\n`
      if (line.startsWith('{"ready":true')) resolve(JSON.parse(line) as LocalStackDescription)
    })
    void exited.then(({ code }) => reject(new Error(`outbox local ended with exit code ${code}: ${stderr}`)))
  })
  const pid = child.pid!
  return {
    pid,
    description,
    stdout: () => stdout,
    children: () => childrenOf(pid),
    async end(signal) {
      const children = await childrenOf(pid)
      child.kill(signal)
      const how = await exited
      // the end of each child is the signal waited for; 15 s is what a test gives them
      const giveUpAt = performance.now() + 15_000
      for (const one of children) {
        while (await isAlive(one)) {
          if (performance.now() > giveUpAt) throw new Error(`process ${one} survived`)
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      }
      return how
    },
    leftovers: () => readdir(temporary),
  }
}
