import { z } from 'zod'
import { DataApiFault } from './fault.js'
import { parameterSchema } from './parameters.js'

const target = { resourceArn: z.string().min(1), secretArn: z.string().min(1) }
const place = { ...target, database: z.string().optional(), schema: z.string().optional() }
const statement = { ...place, sql: z.string(), transactionId: z.string().optional() }

const REQUESTS = {
  '/Execute': z.object({
    ...statement,
    parameters: z.array(parameterSchema).default([]),
    includeResultMetadata: z.boolean().default(false),
    continueAfterTimeout: z.boolean().default(false),
    resultSetOptions: z
      .object({
        decimalReturnType: z.enum(['STRING', 'DOUBLE_OR_LONG']).default('STRING'),
        longReturnType: z.enum(['LONG', 'STRING']).default('LONG'),
      })
      .default({ decimalReturnType: 'STRING', longReturnType: 'LONG' }),
    formatRecordsAs: z.enum(['NONE', 'JSON']).default('NONE'),
  }),
  '/BatchExecute': z.object({ ...statement, parameterSets: z.array(z.array(parameterSchema)).default([]) }),
  '/BeginTransaction': z.object(place),
  '/CommitTransaction': z.object({ ...target, transactionId: z.string() }),
  '/RollbackTransaction': z.object({ ...target, transactionId: z.string() }),
}

export type Path = keyof typeof REQUESTS
export type Request<P extends Path> = z.infer<(typeof REQUESTS)[P]>
export type ExecuteRequest = Request<'/Execute'>
export type BatchRequest = Request<'/BatchExecute'>

export function isPath(path: string): path is Path {
  return Object.hasOwn(REQUESTS, path)
}

/** @throws DataApiFault `ValidationException`, which names the member. */
export function parseRequest<P extends Path>(path: P, body: unknown): Request<P> {
  const parsed = REQUESTS[path].safeParse(body)
  if (parsed.success) {
    if ('schema' in parsed.data && parsed.data.schema !== undefined) {
      throw new DataApiFault('ValidationException', "The schema parameter isn't supported.")
    }
    return parsed.data as Request<P>
  }
  const [issue] = parsed.error.issues
  const member = issue === undefined ? 'body' : issue.path.join('.')
  throw new DataApiFault(
    'ValidationException',
    `1 validation error detected: Value at '${member}' failed to satisfy constraint: ${issue?.message ?? ''}`,
  )
}
