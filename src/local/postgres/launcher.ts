import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { chown, mkdir, mkdtemp, open, readFile, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { OutboxError } from '../../core/errors.js'
import { loadPg } from '../pg.js'
import { installedBinaries, isOpenToOthers, prepareBinaries, type PostgresBinaries } from './binaries.js'
import { childrenOf, isAlive } from './children.js'
import { startWatchdog } from './watchdog.js'

export interface PostgresOptions {
  /** Keeps the database across restarts; made if missing. Default: a temporary directory, removed by `stop()`. */
  readonly dataDirectory?: string | undefined
  /** TCP port on 127.0.0.1. Default 0: a free one. */
  readonly port?: number | undefined
  /** Users, or `+role` for all members of a role, who must give their password. Default: nobody. */
  readonly passwordsOf?: readonly string[] | undefined
}

/** A running PostgreSQL server on 127.0.0.1, superuser `postgres`, no password. */
export interface LocalPostgres {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly dataDirectory: string
  /** Of the server's first process; of the last one while it is down. */
  readonly pid: number
  /** A connection string for plain SQL clients. Default: database and user `postgres`. */
  url(database?: string, user?: string): string
  /** Ends the server, and removes its temporary directory. Again: no effect. */
  stop(): Promise<void>
  /** Kills every process of the server at once, as a power failure would. */
  crash(): Promise<void>
  /** Starts it again on the same port and files, ending it first if it runs. */
  restart(): Promise<void>
}

const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 10_000
/** `nobody` on every system we run on: PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534

interface Identity {
  readonly uid: number
  readonly gid: number
}

/**
 * Starts a PostgreSQL server from the npm package, for tests, demos and laptops: UTF-8, C locale, UTC. Anyone on this
 * machine may log in without a password, but for those in `passwordsOf`: whoever reaches its port also reaches the local Data API, which asks for none.
 * It ends with this process, however that ends.
 *
 * @throws OutboxError `PostgresMissing` or `PostgresFailed`; the message says what to do.
 * @example
 * const postgres = await startPostgres()
 * const client = new pg.Client(postgres.url())
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<LocalPostgres> {
  const identity = process.getuid?.() === 0 ? await identityFor(options.dataDirectory) : undefined
  const temporary = await mkdtemp(join(await temporaryRoot(identity), 'outbox-postgres-'))
  const dataDirectory = resolve(options.dataDirectory ?? join(temporary, 'data'))
  const watchdog = startWatchdog(dataDirectory, temporary)
  const discard = async () => {
    watchdog.dismiss()
    await rm(temporary, { recursive: true, force: true })
  }
  try {
    if (identity !== undefined) await chown(temporary, identity.uid, identity.gid)
    const binaries = await prepareBinaries(
      await installedBinaries(),
      temporary,
      identity === undefined ? 'this-user' : 'other-user',
    )
    await prepareDataDirectory(binaries, dataDirectory, temporary, identity)
    // beside the data, whose own file may be from another release
    const hbaFile = join(temporary, 'pg_hba.conf')
    await writeFile(hbaFile, loginRules(options.passwordsOf ?? []))
    const settings = [`hba_file=${hbaFile}`, ...(options.dataDirectory === undefined ? UNSAFE_BUT_FAST : [])]
    const log = join(temporary, 'postgres.log')
    const launch = (port: number) => launchServer({ binaries, dataDirectory, identity, settings, log, temporary }, port)
    const fixed = options.port !== undefined && options.port !== 0 ? options.port : undefined
    let server = await (fixed === undefined ? launchOnFreePort(launch) : launch(fixed))
    const { port } = server
    let stopping: Promise<void> | undefined
    return {
      host: '127.0.0.1',
      port,
      dataDirectory,
      get pid() {
        return server.pid
      },
      url: (database = 'postgres', user = 'postgres') =>
        `postgres://${encodeURIComponent(user)}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
      stop: () => (stopping ??= server.end().finally(discard)),
      crash: () => server.kill(),
      restart: async () => {
        await server.end()
        server = await launch(port)
      },
    }
  } catch (error) {
    await discard()
    throw error
  }
}

/** The first rule that fits decides. A role that is not there yet has no members. */
function loginRules(passwordsOf: readonly string[]): string {
  const asked = passwordsOf.map((who) => `host all ${who} 127.0.0.1/32 scram-sha-256\n`)
  return `${asked.join('')}host all all 127.0.0.1/32 trust\n`
}

/** Only for files that nobody wants back after a crash of the machine. A crash of the server alone loses no commit. */
const UNSAFE_BUT_FAST = ['fsync=off', 'full_page_writes=off']

async function identityFor(dataDirectory: string | undefined): Promise<Identity> {
  const owner = dataDirectory === undefined ? undefined : await stat(dataDirectory).catch(() => undefined)
  if (owner === undefined || owner.uid === 0) return { uid: UNPRIVILEGED, gid: UNPRIVILEGED }
  return { uid: owner.uid, gid: owner.gid }
}

/** A temporary directory may lie below a home that only its owner may enter: no place for a server of another user. */
async function temporaryRoot(identity: Identity | undefined): Promise<string> {
  const own = await realpath(tmpdir())
  return identity === undefined || (await isOpenToOthers(own)) ? own : '/tmp'
}

async function prepareDataDirectory(
  binaries: PostgresBinaries,
  directory: string,
  temporary: string,
  identity: Identity | undefined,
): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const present = await readdir(directory)
  if (present.includes('PG_VERSION')) return
  if (present.length > 0) {
    throw failed(`${directory} is neither empty nor a PostgreSQL data directory: name another one`)
  }
  if (identity !== undefined) await chown(directory, identity.uid, identity.gid)
  const options = ['--encoding=UTF8', '--no-locale', '--username=postgres', '--auth=trust', '--no-sync', '--no-instructions']
  try {
    await promisify(execFile)(binaries.initdb, [`--pgdata=${directory}`, ...options], {
      ...identity,
      cwd: temporary,
      env: ENVIRONMENT,
    })
  } catch (cause) {
    throw failed(`cannot make a database in ${directory}: ${lastLine((cause as { stderr?: string }).stderr)}`, cause)
  }
}

/** None of the caller's PG* variables, which would redirect the server. */
const ENVIRONMENT = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', TZ: 'UTC', LC_ALL: 'C' }

interface Launch {
  readonly binaries: PostgresBinaries
  readonly dataDirectory: string
  readonly temporary: string
  readonly identity: Identity | undefined
  readonly settings: readonly string[]
  readonly log: string
}

interface Server {
  readonly port: number
  readonly pid: number
  end(): Promise<void>
  kill(): Promise<void>
}

async function launchServer(launch: Launch, port: number): Promise<Server> {
  const settings = [
    ...['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', 'max_connections=300'],
    // files in the data directory instead of /dev/shm, so that a killed server leaves nothing outside of it
    ...['dynamic_shared_memory_type=mmap', 'timezone=UTC', 'log_timezone=UTC', ...launch.settings],
  ]
  const log = await open(launch.log, 'a')
  const child = spawn(launch.binaries.postgres, ['-D', launch.dataDirectory, ...settings.flatMap((setting) => ['-c', setting])], {
    ...launch.identity,
    cwd: launch.temporary,
    env: ENVIRONMENT,
    stdio: ['ignore', log.fd, log.fd],
    // its own session: Ctrl-C in a terminal must not end it before its clients
    detached: true,
  })
  child.unref()
  const exited = new Promise<void>((done) => {
    child.once('exit', () => done())
    child.once('error', () => done())
  })
  await log.close()
  const pid = child.pid ?? 0
  const isDown = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null
  const end = async () => {
    if (isDown()) return
    child.ref()
    child.kill('SIGINT')
    const force = setTimeout(() => child.kill('SIGQUIT'), STOP_TIMEOUT_MS)
    await exited
    clearTimeout(force)
  }
  try {
    await untilReady(port, launch.dataDirectory, isDown)
  } catch (cause) {
    await end()
    throw failed(
      `PostgreSQL did not start on port ${port}: ${lastLine(await readFile(launch.log, 'utf8').catch(() => ''))}`,
      cause,
    )
  }
  return { port, pid, end, kill: () => killAll(child, exited, join(launch.dataDirectory, 'postmaster.pid')) }
}

/** Between finding a free port and binding it, another process may take it. */
async function launchOnFreePort(launch: (port: number) => Promise<Server>): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await launch(await freePort())
    } catch (error) {
      if (attempt === 3 || !/in use|could not (bind|create any TCP)/i.test((error as Error).message)) throw error
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done, fail) => {
    probe.once('error', fail)
    probe.listen(0, '127.0.0.1', done)
  })
  const { port } = probe.address() as { readonly port: number }
  await new Promise((done) => probe.close(done))
  return port
}

async function untilReady(port: number, dataDirectory: string, isDown: () => boolean): Promise<void> {
  const { Client } = await loadPg()
  const giveUpAt = performance.now() + START_TIMEOUT_MS
  for (;;) {
    const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres', ssl: false })
    client.on('error', () => undefined)
    try {
      await client.connect()
      const { rows } = await client.query<{ at: string }>(`SELECT current_setting('data_directory') AS at`)
      await client.end()
      if (rows[0]?.at === dataDirectory) return
      throw new Error('another server answers there')
    } catch (error) {
      if (isDown() || performance.now() > giveUpAt) throw error
      await delay(20)
    }
  }
}

async function killAll(child: ChildProcess, exited: Promise<void>, pidFile: string): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.ref()
  // stopped first, so that it starts no new process while we look
  child.kill('SIGSTOP')
  const children = await childrenOf(child.pid)
  for (const pid of [...children, child.pid]) process.kill(pid, 'SIGKILL')
  await exited
  for (const pid of children) while (await isAlive(pid)) await delay(5)
  // the number may soon belong to another process
  await rm(pidFile, { force: true })
}

function failed(message: string, cause?: unknown): OutboxError {
  return new OutboxError('PostgresFailed', message, { cause })
}

function lastLine(text: string | undefined): string {
  const lines = (text ?? '').trim().split('\n')
  const telling = lines.findLast((line) => /error|fatal|could not/i.test(line))
  return (telling ?? lines.at(-1) ?? '').replace(/^[-\d:. ]+UTC \[\d+\] /, '')
}
