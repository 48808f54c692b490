// The process that runs one handler's invocations, one after another, as Lambda's runtime does. Its argument is the path of
// the bundle; invocations arrive, and results leave, over the channel to the process that started it.
import { pathToFileURL } from 'node:url'
import { endLine } from './lambda/messages.js'
import type { HostMessage, InvokeMessage } from './lambda/messages.js'

type Handler = (event: unknown, context: unknown) => Promise<unknown>

const { env } = process
const send = (message: HostMessage) => void process.send?.(message)

// Ctrl-C reaches every process of the terminal: the stack decides when this one ends
process.on('SIGINT', () => undefined)
// the stack is gone, however it went
process.on('disconnect', () => process.exit(0))

function contextOf({ requestId, deadlineMs }: InvokeMessage) {
  return {
    awsRequestId: requestId,
    functionName: env['AWS_LAMBDA_FUNCTION_NAME'],
    functionVersion: env['AWS_LAMBDA_FUNCTION_VERSION'],
    invokedFunctionArn: `arn:aws:lambda:${env['AWS_REGION'] ?? ''}:000000000000:function:${env['AWS_LAMBDA_FUNCTION_NAME'] ?? ''}`,
    memoryLimitInMB: env['AWS_LAMBDA_FUNCTION_MEMORY_SIZE'],
    logGroupName: env['AWS_LAMBDA_LOG_GROUP_NAME'],
    logStreamName: env['AWS_LAMBDA_LOG_STREAM_NAME'],
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
  }
}

function errorOf(error: unknown) {
  return error instanceof Error ? { name: error.name, message: error.message } : { name: 'Error', message: String(error) }
}

async function run(handler: Handler, message: InvokeMessage): Promise<void> {
  const { requestId, event } = message
  try {
    const result = await handler(event, contextOf(message))
    send({ kind: 'returned', requestId, value: JSON.stringify(result ?? null) })
  } catch (error) {
    send({ kind: 'failed', requestId, error: errorOf(error) })
  } finally {
    process.stdout.write(`\n${endLine(requestId)}\n`)
  }
}

try {
  const { handler } = (await import(pathToFileURL(process.argv[2] ?? '').href)) as { handler: Handler }
  process.on('message', (message) => void run(handler, message as InvokeMessage))
  send({ kind: 'ready' })
} catch (error) {
  send({ kind: 'failed', requestId: null, error: errorOf(error) })
}
