import { parseLogin } from '../../secrets/login.js'
import type { LocalService, ServiceRequest, ServiceResponse } from '../service.js'
import { columnMetadata } from './column-metadata.js'
import { createConnections, type Connection, type Connections, type DatabaseLogin, type DatabaseServer } from './connections.js'
import { statementFault } from './database-error.js'
import { answer, answerFault, DataApiFault } from './fault.js'
import { DATA_API_LIMITS, type DataApiLimits } from './limits.js'
import { bindParameters, parseBody, type BoundStatement } from './parameters.js'
import { isPath, parseRequest, type BatchRequest, type ExecuteRequest, type Path, type Request } from './request.js'
import { checkResult, encodeRecords, formatRecords } from './result.js'
import { parseSqlText } from './sql-text.js'
import { running, startStatement, type Running, type StatementResult, type StatementTimeout } from './statement.js'
import { createTransactions, type OpenTransaction } from './transactions.js'

export interface DataApiOptions {
  readonly server: DatabaseServer
  /** The cluster that this service serves. */
  readonly resourceArn: string
  /** What a secret holds now, asked at every call. Undefined: there is no such secret. */
  readonly readSecret: (secretArn: string) => Promise<string | undefined>
  /** Default: what AWS allows. */
  readonly limits?: Partial<DataApiLimits> | undefined
  /**
   * What becomes of a statement outside of a transaction whose answer is too large: AWS does not say. Default `commit`,
   * the outcome that a client must be prepared for.
   */
  readonly oversizeAutocommit?: 'commit' | 'rollback' | undefined
}

export interface DataApi extends LocalService {
  openTransactions(): readonly OpenTransaction[]
}

/**
 * The RDS Data API in front of a PostgreSQL server, with the teeth of the real one: typed parameters, its limits, its
 * ways to lose a transaction, and the names and texts of its errors. It asks for a signature and does not check it.
 *
 * @example
 * const dataApi = createDataApi({ server: postgres, resourceArn, readSecret: (arn) => Promise.resolve(secrets[arn]) })
 */
export function createDataApi(options: DataApiOptions): DataApi {
  const limits = { ...DATA_API_LIMITS, ...options.limits }
  const transactions = createTransactions(limits.transactionIdleMs)
  let opened: Promise<Connections> | undefined
  const connections = () => (opened ??= createConnections(options.server))

  const loginOf = async ({
    resourceArn,
    secretArn,
  }: {
    readonly resourceArn: string
    readonly secretArn: string
  }): Promise<DatabaseLogin> => {
    if (resourceArn !== options.resourceArn) {
      throw new DataApiFault('HttpEndpointNotEnabledException', `HttpEndpoint is not enabled for resource ${resourceArn}`)
    }
    const text = await options.readSecret(secretArn).catch((error: unknown) => {
      throw new DataApiFault('SecretsErrorException', `The secret ${secretArn} can't be read: ${(error as Error).message}`)
    })
    if (text === undefined) throw new DataApiFault('SecretsErrorException', `The secret ${secretArn} wasn't found.`)
    const login = parseLogin(text)
    if (login !== undefined) return { user: login.username, password: login.password }
    throw new DataApiFault('InvalidSecretException', `The secret ${secretArn} isn't JSON with username and password.`)
  }

  const timeoutFor = (login: DatabaseLogin, database: string, then: StatementTimeout['then']): StatementTimeout => ({
    ms: limits.statementTimeoutMs,
    then,
    cancel: async (backendId) => (await connections()).cancel(login, database, backendId),
  })

  /** Runs a call in its transaction, or on a connection of its own. Like PostgreSQL, a nameless database is the user's. */
  const call = async <T>(
    request: ExecuteRequest | BatchRequest,
    start: (connection: Connection, login: DatabaseLogin, database: string) => Running<T>,
  ): Promise<T> => {
    const login = await loginOf(request)
    const { transactionId, secretArn } = request
    if (transactionId !== undefined) {
      return transactions.run({ transactionId, secretArn, database: request.database }, (connection, database) =>
        start(connection, login, database),
      )
    }
    const database = request.database ?? login.user
    const connection = await (await connections()).open(login, database)
    const { answer, done } =
      options.oversizeAutocommit === 'rollback'
        ? atomic(connection, () => start(connection, login, database))
        : start(connection, login, database)
    void done.then(() => connection.release())
    return answer
  }

  const execute = async (request: ExecuteRequest): Promise<string> => {
    checkSql(request.sql, limits)
    const bound = bindParameters(request.sql, request.parameters)
    const then = request.continueAfterTimeout ? 'continue' : 'cancel'
    return call(request, (connection, login, database) =>
      startStatement(connection, bound, timeoutFor(login, database, then), (result) =>
        encode(connection, request, result, limits),
      ),
    )
  }

  const batchExecute = async (request: BatchRequest): Promise<string> => {
    checkSql(request.sql, limits)
    if (parseSqlText(request.sql).endsWithSemicolon) {
      throw new DataApiFault('ValidationException', 'The SQL statement of a batch must not end with a semicolon.')
    }
    const sets = request.parameterSets.map((parameters) => bindParameters(request.sql, parameters))
    return call(request, (connection, login, database) =>
      startBatch(sets, limits.statementTimeoutMs, (bound, ms) =>
        startStatement(connection, bound, { ...timeoutFor(login, database, 'cancel'), ms }, () => undefined),
      ),
    )
  }

  const begin = async (request: Request<'/BeginTransaction'>): Promise<string> => {
    const login = await loginOf(request)
    const database = request.database ?? login.user
    const connection = await (await connections()).open(login, database)
    return JSON.stringify({ transactionId: await transactions.begin(connection, request.secretArn, database) })
  }

  const finish = async (request: Request<'/CommitTransaction'>, how: 'COMMIT' | 'ROLLBACK'): Promise<string> => {
    await loginOf(request)
    await transactions.finish({ ...request, database: undefined }, how)
    return JSON.stringify({ transactionStatus: how === 'COMMIT' ? 'Transaction Committed' : 'Rollback Complete' })
  }

  const operations: { readonly [P in Path]: (body: unknown) => Promise<string> } = {
    '/Execute': (body) => execute(parseRequest('/Execute', body)),
    '/BatchExecute': (body) => batchExecute(parseRequest('/BatchExecute', body)),
    '/BeginTransaction': (body) => begin(parseRequest('/BeginTransaction', body)),
    '/CommitTransaction': (body) => finish(parseRequest('/CommitTransaction', body), 'COMMIT'),
    '/RollbackTransaction': (body) => finish(parseRequest('/RollbackTransaction', body), 'ROLLBACK'),
  }

  return {
    handle: async (request) => {
      try {
        const path = checkRequest(request, limits)
        return answer(await operations[path](parseBody(request.body)))
      } catch (error) {
        return answerError(error)
      }
    },
    openTransactions: () => transactions.list(),
    stop: async () => {
      const current = await opened?.catch(() => undefined)
      opened = undefined
      await current?.close()
    },
  }
}

function checkRequest({ method, path, headers, body }: ServiceRequest, limits: DataApiLimits): Path {
  const [name = ''] = path.split('?')
  if (name === '/ExecuteSql') {
    throw new DataApiFault(
      'ValidationException',
      "The ExecuteSql operation isn't supported. Use ExecuteStatement or BatchExecuteStatement.",
    )
  }
  if (method !== 'POST' || !isPath(name)) throw new DataApiFault('UnknownOperationException', `${method} ${name}`)
  // also keeps web pages out: a browser sends this header to another origin only if that one agrees first
  if (headers['authorization'] === undefined)
    throw new DataApiFault('MissingAuthenticationTokenException', 'Missing Authentication Token')
  const headerBytes = Object.entries(headers).reduce((sum, [header, value]) => sum + header.length + value.length + 4, 0)
  if (headerBytes + body.length > limits.maxRequestBytes) {
    throw new DataApiFault('RequestEntityTooLargeException', `The request is larger than ${limits.maxRequestBytes} bytes.`)
  }
  return name
}

function checkSql(sql: string, { maxSqlCharacters }: DataApiLimits): void {
  if (sql.length <= maxSqlCharacters) return
  throw new DataApiFault(
    'ValidationException',
    `1 validation error detected: Value at 'sql' failed to satisfy constraint: Member must have length less than or equal to ${maxSqlCharacters}`,
  )
}

async function encode(
  connection: Connection,
  request: ExecuteRequest,
  result: StatementResult,
  limits: DataApiLimits,
): Promise<string> {
  checkResult(result.columns, result.rows, limits)
  const members = [`"generatedFields":[]`, `"numberOfRecordsUpdated":${result.updatedRows}`]
  if (result.fields.length > 0) {
    if (request.formatRecordsAs === 'JSON' && result.command === 'SELECT') {
      members.push(`"formattedRecords":${JSON.stringify(formatRecords(result.columns, result.rows, request.resultSetOptions))}`)
    } else {
      members.push(`"records":${encodeRecords(result.columns, result.rows, request.resultSetOptions)}`)
      if (request.includeResultMetadata)
        members.push(`"columnMetadata":${JSON.stringify(await columnMetadata(connection, result))}`)
    }
  }
  return `{${members.join(',')}}`
}

/** One set after the other, each in its own transaction unless the call has one. PostgreSQL reports no counts here. */
function startBatch(
  sets: readonly BoundStatement[],
  ms: number,
  start: (bound: BoundStatement, ms: number) => Running<undefined>,
): Running<string> {
  const endsAt = performance.now() + ms
  const runAll = async () => {
    for (const bound of sets) {
      const { answer, done } = start(bound, endsAt - performance.now())
      const [outcome] = await Promise.allSettled([answer, done])
      if (outcome.status === 'rejected') throw outcome.reason
    }
    return JSON.stringify({ updateResults: sets.map(() => ({ generatedFields: [] })) })
  }
  return running(runAll())
}

/** Rolls an autocommit call back if anything goes wrong, also after the statement itself has succeeded. */
function atomic<T>(connection: Connection, start: () => Running<T>): Running<T> {
  const control = async (sql: string) => {
    await connection.client.query(sql).catch((error: unknown) => {
      throw statementFault(error, false)
    })
  }
  const runAll = async () => {
    await control('BEGIN')
    const { answer, done } = start()
    const [outcome] = await Promise.allSettled([answer, done])
    await control(outcome.status === 'fulfilled' ? 'COMMIT' : 'ROLLBACK')
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }
  return running(runAll())
}

function answerError(error: unknown): ServiceResponse {
  if (error instanceof DataApiFault) return answerFault(error)
  // a fault of ours or of the installation: say what it is, where a person sees it
  process.emitWarning(error instanceof Error ? error : String(error))
  return answerFault(new DataApiFault('InternalServerErrorException', ''))
}
