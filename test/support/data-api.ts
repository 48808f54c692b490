import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll } from 'vitest'
import { createDataApi, type DataApi, type DataApiOptions } from '../../src/local/data-api/data-api.js'
import type { ServiceResponse } from '../../src/local/service.js'
import { freshDatabase, type FreshDatabase } from './postgres.js'

export type DataApiOperation = 'Execute' | 'BatchExecute' | 'BeginTransaction' | 'CommitTransaction' | 'RollbackTransaction'

export type InjectedFault =
  /** The call is refused without effect. */
  | { readonly kind: 'error'; readonly name: string; readonly status?: number; readonly message?: string }
  /** The call has its effect, and then fails: it is answered as `error`. */
  | { readonly kind: 'error-after'; readonly name: string; readonly status?: number; readonly message?: string }
  /** The call has its effect, and the connection is cut instead of an answer; `meanwhile` runs between the two. */
  | { readonly kind: 'drop-reply'; readonly meanwhile?: () => Promise<unknown> }
  /** The connection is cut, without effect; `meanwhile` runs before. */
  | { readonly kind: 'reset'; readonly meanwhile?: () => Promise<unknown> }
  /** The connection is cut at once; the call goes on by itself, and has its effect once `until` is resolved. */
  | { readonly kind: 'late'; readonly until: Promise<unknown>; readonly arrived: (answer: ServiceResponse) => void }
  /** The call has its effect twice, as if an SDK sent it again without telling; the second answer is given. */
  | { readonly kind: 'twice' }
  /** The call is held back before it has its effect. */
  | { readonly kind: 'latency'; readonly ms: number }

export interface FaultRule {
  readonly operation?: DataApiOperation
  /** Found in the request's SQL. */
  readonly match?: string | RegExp
  /** Default 1. */
  readonly times?: number
  readonly fault: InjectedFault
}

export interface RecordedRequest {
  readonly operation: DataApiOperation
  readonly sql: string | undefined
  /** The body as the client sent it. */
  readonly body: Readonly<Record<string, unknown>>
}

export interface TestDataApi {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string
  readonly resourceArn: string
  /** Logs in as `postgres`. */
  readonly secretArn: string
  readonly database: string
  /** Superuser's connection string of the same database. */
  readonly pgUrl: string
  /** The same database by plain SQL. */
  readonly db: FreshDatabase
  readonly dataApi: DataApi
  /** For `new RDSDataClient(...)`: endpoint, region, any credentials. */
  readonly clientConfig: {
    readonly endpoint: string
    readonly region: string
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
  }
  /** Every request that came in, oldest first; faulty ones too. Empty it with `requests.length = 0`. */
  readonly requests: RecordedRequest[]
  /** The ARN of a secret that logs in as this role, which the test has made (`CREATE ROLE ... LOGIN`). */
  secretFor(user: string): string
  /** The first rule that applies to a request is used up by it. */
  inject(rule: FaultRule): void
  clearFaults(): void
  /** Called by itself after the file's last test. */
  stop(): Promise<void>
}

/**
 * A Data API server with a fresh database, for one test file: call it at top level or in `beforeAll`. `postgresUrl`: of a server
 * that the test started, e.g. to kill it; default: the run's.
 */
export async function startTestDataApi({
  postgresUrl,
  ...options
}: Pick<DataApiOptions, 'limits' | 'oversizeAutocommit'> & { readonly postgresUrl?: string } = {}): Promise<TestDataApi> {
  const db = await freshDatabase('data_api', postgresUrl)
  const resourceArn = 'arn:aws:rds:us-east-1:000000000000:cluster:test'
  const secretArn = 'arn:aws:secretsmanager:us-east-1:000000000000:secret:postgres-AbCdEf'
  // the run's server asks nobody for a password
  const secretOf = (username: string) => JSON.stringify({ username, password: 'any' })
  const secrets: Record<string, string> = { [secretArn]: secretOf('postgres') }
  const { hostname, port } = new URL(db.url())
  const dataApi = createDataApi({
    server: { host: hostname, port: Number(port) },
    resourceArn,
    readSecret: (arn) => Promise.resolve(Object.hasOwn(secrets, arn) ? secrets[arn] : undefined),
    ...options,
  })
  const requests: RecordedRequest[] = []
  const faults: { readonly rule: FaultRule; left: number }[] = []

  const takeFault = ({ operation, sql = '' }: RecordedRequest): InjectedFault | undefined => {
    const found = faults.find(
      ({ rule, left }) =>
        left > 0 &&
        (rule.operation === undefined || rule.operation === operation) &&
        (rule.match === undefined || (typeof rule.match === 'string' ? sql.includes(rule.match) : rule.match.test(sql))),
    )
    if (found !== undefined) found.left--
    return found?.rule.fault
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = Buffer.concat(await request.toArray())
    const path = request.url ?? ''
    const recorded = record(path, body)
    requests.push(recorded)
    const fault = takeFault(recorded)
    const refuse = ({ name, status = 400, message = name }: Extract<InjectedFault, { readonly name: string }>): void => {
      response.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': name })
      response.end(JSON.stringify({ message }))
    }
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const handle = () => dataApi.handle({ method: request.method ?? '', path, headers, body })
    if (fault?.kind === 'error') {
      refuse(fault)
      return
    }
    if (fault?.kind === 'reset') {
      await fault.meanwhile?.()
      return void request.socket.destroy()
    }
    if (fault?.kind === 'late') {
      request.socket.destroy()
      await fault.until
      fault.arrived(await handle())
      return
    }
    if (fault?.kind === 'latency') await delay(fault.ms)
    if (fault?.kind === 'twice') await handle()
    const answer = await handle()
    if (fault?.kind === 'error-after') {
      refuse(fault)
      return
    }
    if (fault?.kind === 'drop-reply') {
      await fault.meanwhile?.()
      return void request.socket.destroy()
    }
    response.writeHead(answer.status, answer.headers)
    response.end(answer.body)
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let stopped: Promise<void> | undefined
  const stop = async () => {
    const closed = new Promise((done) => server.close(done))
    server.closeAllConnections()
    await closed
    await dataApi.stop()
    await db.drop()
  }
  const it: TestDataApi = {
    endpoint,
    resourceArn,
    secretArn,
    database: db.name,
    pgUrl: db.url(),
    db,
    dataApi,
    clientConfig: { endpoint, region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } },
    requests,
    secretFor: (user) => {
      const arn = `arn:aws:secretsmanager:us-east-1:000000000000:secret:${user}-AbCdEf`
      secrets[arn] = secretOf(user)
      return arn
    },
    inject: (rule) => {
      faults.push({ rule, left: rule.times ?? 1 })
    },
    clearFaults: () => {
      faults.length = 0
    },
    stop: () => (stopped ??= stop()),
  }
  afterAll(() => it.stop())
  return it
}

function record(path: string, bytes: Buffer): RecordedRequest {
  const operation = path.slice(1).split('?')[0] as DataApiOperation
  try {
    const body = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
    return { operation, sql: typeof body['sql'] === 'string' ? body['sql'] : undefined, body }
  } catch {
    return { operation, sql: undefined, body: {} }
  }
}
