import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { build } from '../../scripts/build.mjs'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase, type DataApiDatabase } from '../../src/data-api/database.js'
import { startLocalStack, type LocalStack, type LocalStackOptions } from '../../src/local/stack.js'
import type { BenchTools } from './run.js'

export interface BenchStackOptions extends Omit<LocalStackOptions, 'port' | 'configFile' | 'log'> {
  /** What `outbox local --config` takes. */
  readonly config?: object
  /** Gets every line that the stack and its functions log. Default: nobody. */
  readonly onLog?: (line: string) => void
}

/** A local stack with the handlers as they are now, and two ways to its database. */
export interface BenchStack {
  readonly stack: LocalStack
  /** Through the Data API, as a service has it. */
  readonly database: DataApiDatabase
  /** By plain SQL, so that it counts as no call: the rows of one statement. */
  readonly query: <Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]) => Promise<Row[]>
  /** Calls of the Data API so far, counted by the server. */
  dataApiCalls(): Promise<number>
  /** Invocations of handlers that failed. */
  failedInvocations(): number
  stop(): Promise<void>
}

let built: Promise<unknown> | undefined

export async function startBenchStack(tools: BenchTools, { config, onLog, ...options }: BenchStackOptions): Promise<BenchStack> {
  await (built ??= build())
  let failed = 0
  const log = (line: string) => {
    onLog?.(line)
    if (/^\S+ invocation \S+ failed: /.test(line)) failed += 1
  }
  const stack = await withConfigFile(config, (configFile) => startLocalStack({ ...options, port: 0, configFile, log }))
  const { endpoint, region, resourceArn, secretArn, database: name, databaseUrl } = stack.description
  const client = createRdsDataClient({ endpoint, region, credentials: { accessKeyId: 'local', secretAccessKey: 'local' } })
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  // a connection that the server ends is replaced by the next call
  pool.on('error', () => undefined)
  let stopping: Promise<void> | undefined
  const stop = async () => {
    await pool.end()
    client.destroy()
    await stack.stop()
  }
  const it: BenchStack = {
    stack,
    database: createDataApiDatabase({ client, resourceArn, secretArn, database: name }),
    query: async <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(sql, [...values])).rows,
    async dataApiCalls() {
      const { calls } = await stack.state()
      return Object.entries(calls).reduce((sum, [call, count]) => (call.startsWith('rds-data.') ? sum + count : sum), 0)
    },
    failedInvocations: () => failed,
    stop: () => (stopping ??= stop()),
  }
  tools.atEnd(() => it.stop())
  return it
}

/** Waits until a condition holds. @throws Error after `giveUpSeconds`, naming what it waited for. */
export async function until(what: string, giveUpSeconds: number, condition: () => Promise<boolean> | boolean): Promise<void> {
  const giveUpAt = performance.now() + giveUpSeconds * 1000
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`gave up after ${giveUpSeconds} s: ${what}`)
    await pause(100)
  }
}

async function withConfigFile<Value>(
  config: object | undefined,
  use: (file: string | undefined) => Promise<Value>,
): Promise<Value> {
  if (config === undefined) return use(undefined)
  const directory = await mkdtemp(join(tmpdir(), 'outbox-bench-'))
  try {
    await chmod(directory, 0o755)
    const file = join(directory, 'config.json')
    await writeFile(file, JSON.stringify(config))
    return await use(file)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
