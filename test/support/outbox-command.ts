import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../dist/esm/bin/outbox.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface RunningCommand {
  readonly pid: number
  /** The first line on stdout; rejects if the command ends before it. */
  readonly firstLine: Promise<string>
  readonly ended: Promise<Ended>
  /** Resolves as soon as stdout or stderr holds `text`; rejects if the command ends before it. */
  seen(text: string): Promise<void>
  /** To it alone, or to it and all it started in its process group, as Ctrl-C in a terminal does. */
  signal(name: NodeJS.Signals, to?: 'itself' | 'group'): void
}

/** Starts the built command as a person would, with nothing of this process's AWS or outbox settings. */
export function startOutbox(args: readonly string[], environment: Readonly<Record<string, string>> = {}): RunningCommand {
  const own = Object.entries(process.env).filter(([name]) => !/^(AWS|OUTBOX)_/.test(name))
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...Object.fromEntries(own), AWS_EC2_METADATA_DISABLED: 'true', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a process group of its own
  })
  let out = ''
  let err = ''
  const looks = new Set<() => void>()
  const look = (): void => looks.forEach((one) => one())
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
    look()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
    look()
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, out, err }))
  })
  const until = <Value>(find: () => Value | undefined): Promise<Value> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const value = find()
        if (value === undefined) return
        looks.delete(check)
        resolve(value)
      }
      looks.add(check)
      check()
      void ended.then(({ code }) => reject(new Error(`outbox ${args.join(' ')} ended with ${code}: ${err}`)))
    })
  const firstLine = until(() => (out.includes('\n') ? out.slice(0, out.indexOf('\n')) : undefined))
  firstLine.catch(() => undefined)
  return {
    pid: child.pid ?? 0,
    firstLine,
    ended,
    seen: (text) => until(() => (out.includes(text) || err.includes(text) ? true : undefined)).then(() => undefined),
    signal: (name, to = 'itself') => {
      if (child.pid === undefined || child.exitCode !== null) return
      process.kill(to === 'group' ? -child.pid : child.pid, name)
    },
  }
}

/** Runs the built command to its end. */
export function runOutbox(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return startOutbox(args, environment).ended
}
