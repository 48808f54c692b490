import { spawn } from 'node:child_process'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'

/** A program in a process group of its own, so that what it starts ends with it. */
export interface Program {
  /** Exit code, and all it wrote to stdout and stderr. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>
  /** What it wrote so far. */
  output(): string
  isRunning(): boolean
  /** Ends it and all that it started. Again: no effect. */
  stop(): Promise<void>
}

export interface ProgramOptions {
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  /** A copy of its output goes here. */
  readonly logFile: string
}

/** What a program gets of this process's environment: nothing that says which account, cluster or stack to use. */
export function ownEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !/^(AWS|OUTBOX|CDK|NODE_OPTIONS|VITEST)/.test(entry[0]),
    ),
  )
}

/** Starts `command`; `stop()` must be called in the end, also if it ended by itself. */
export async function startProgram(command: string, args: readonly string[], options: ProgramOptions): Promise<Program> {
  await mkdir(path.dirname(options.logFile), { recursive: true })
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const log = createWriteStream(options.logFile, { flags: 'a' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      log.write(text)
    })
  }
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.once('error', (error) => resolve({ code: null, output: error.message }))
    child.once('close', (code) => resolve({ code, output }))
  })
  return {
    ended,
    output: () => output,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    async stop() {
      const { pid } = child
      if (pid === undefined) return
      signalGroup(pid, 'SIGTERM')
      // MiniStack ends within a second or two; a program that does not heed SIGTERM is not waited for any longer
      if (!(await groupIsGone(pid, 5000))) {
        signalGroup(pid, 'SIGKILL')
        await groupIsGone(pid, 5000)
      }
      log.end()
    },
  }
}

/** Runs `command` to its end. */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions & { readonly signal: AbortSignal },
) {
  const program = await startProgram(command, args, options)
  const abort = () => void program.stop()
  options.signal.addEventListener('abort', abort, { once: true })
  try {
    options.signal.throwIfAborted()
    return await program.ended
  } finally {
    options.signal.removeEventListener('abort', abort)
    await program.stop()
  }
}

/** Fails with the end of its output, unless the program did what it should. */
export function mustSucceed({ code, output }: { readonly code: number | null; readonly output: string }): void {
  if (code !== 0) throw new Error(`exit code ${code ?? 'none'}: ${tail(output)}`)
}

/** The last lines of a long output, for a message. */
export const tail = (text: string, lines = 15): string => text.trimEnd().split('\n').slice(-lines).join('\n')

function signalGroup(pid: number, signal: NodeJS.Signals | 0): 'sent' | 'gone' {
  try {
    process.kill(-pid, signal)
    return 'sent'
  } catch {
    return 'gone'
  }
}

async function groupIsGone(pid: number, withinMs: number): Promise<boolean> {
  const giveUpAt = performance.now() + withinMs
  while (signalGroup(pid, 0) === 'sent') {
    if (performance.now() > giveUpAt) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return true
}

/** The file, unless it is not there. */
export function existing(file: string | undefined, name: string): string | undefined {
  if (file === undefined || existsSync(file)) return file
  throw new Error(`${name} is "${file}", which does not exist; allowed: the path of an executable`)
}
