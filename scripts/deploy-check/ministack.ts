import { createServer } from 'node:net'
import path from 'node:path'
import type { CleanUp } from './clean-up.js'
import { existing, ownEnvironment, runProgram, startProgram, tail, type Program } from './program.js'
import { until } from './steps.js'

/** What everything here was tried with; another may differ in what it emulates. */
export const MINISTACK = 'ministack==1.5.33'

/** The executable: that of OUTBOX_MINISTACK, else one that is installed in a virtual environment in `directory`. */
export async function findMiniStack(directory: string, signal: AbortSignal): Promise<string> {
  const given = existing(process.env['OUTBOX_MINISTACK'], 'OUTBOX_MINISTACK')
  if (given !== undefined) return given
  const venv = path.join(directory, 'venv')
  const options = { env: ownEnvironment(), logFile: path.join(directory, 'logs', 'install.log'), signal }
  for (const [command, ...args] of [
    ['python3', '-m', 'venv', venv],
    [path.join(venv, 'bin', 'pip'), 'install', '--quiet', '--disable-pip-version-check', MINISTACK],
  ] as const) {
    const { code, output } = await runProgram(command, args, options)
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${tail(output)}`)
  }
  return path.join(venv, 'bin', 'ministack')
}

/** A port that is free, and stays it: below those that systems give out by themselves. MiniStack takes no 0. */
export function freePort(): Promise<number> {
  const port = 10_000 + Math.floor(Math.random() * 20_000)
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(freePort()) : reject(error)))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(port)))
  })
}

export interface MiniStackOptions {
  readonly executable: string
  readonly directory: string
  readonly port: number
  /** Variables of the server, which its functions inherit. */
  readonly env?: Readonly<Record<string, string>>
  readonly cleanUp: CleanUp
  readonly signal: AbortSignal
}

export interface MiniStack {
  readonly endpoint: string
  readonly program: Program
}

/** Starts it, on 127.0.0.1 alone (by itself it would listen on every address), and waits until it answers. */
export async function startMiniStack(options: MiniStackOptions): Promise<MiniStack> {
  const { executable, directory, port, signal } = options
  const endpoint = `http://127.0.0.1:${port}`
  const program = await startProgram(executable, [], {
    env: {
      ...ownEnvironment(),
      // its files, also those of the functions that it unpacks
      TMPDIR: directory,
      BIND_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      MINISTACK_HOST: '127.0.0.1',
      // two listeners of other services, on fixed ports and every address
      IOT_MTLS_ENABLED: '0',
      SFTP_ENABLED: '0',
      // a container of somebody else's must not be taken for one of its own
      DOCKER_HOST: 'unix:///nonexistent',
      LAMBDA_EXECUTOR: 'local',
      ...options.env,
    },
    cwd: directory,
    logFile: path.join(directory, 'logs', 'ministack.log'),
  })
  options.cleanUp.add(() => program.stop())
  await until('MiniStack answers', 60, signal, async () => {
    if (!program.isRunning()) throw new Error(`MiniStack ended: ${tail(program.output())}`)
    const health = await fetch(`${endpoint}/_ministack/health`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined)
    return health?.ok === true ? true : undefined
  })
  return { endpoint, program }
}
