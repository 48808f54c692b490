import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How the service treats one request. */
export type ScriptedReply =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body: unknown }
  /** Cuts the connection. */
  | 'reset'
  /** Never answers. */
  | 'hang'
  /** Answers with the headers of a 200 and half a body, then falls silent. */
  | 'stall'
  /** Says again and again that it is working on it, and never answers. */
  | 'trickle'

export interface ReceivedRequest {
  /** E.g. `AmazonSQS.SendMessageBatch`; of SNS, whose requests are forms, the action. */
  readonly target: string
  readonly path: string
  readonly body: unknown
}

/** A service that answers exactly what a test says, to a real SDK client. */
export interface ScriptedService {
  readonly endpoint: string
  readonly requests: readonly ReceivedRequest[]
  /** What it answers from now on; a function sees the request. Forgets the requests received. */
  script(reply: ScriptedReply | ((request: ReceivedRequest) => ScriptedReply)): void
  stop(): Promise<void>
}

export const testCredentials = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
} as const

/** What SNS answers to a PublishBatch: its lists in XML. */
export function snsAnswer(successful: string, failed = ''): ScriptedReply {
  const body = `<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult><Successful>${successful}</Successful><Failed>${failed}</Failed></PublishBatchResult></PublishBatchResponse>`
  return { status: 200, headers: { 'content-type': 'text/xml' }, body }
}

/** How SNS words an error. */
export function snsError(status: number, code: string, message: string): ScriptedReply {
  const body = `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`
  return { status, headers: { 'content-type': 'text/xml' }, body }
}

export async function startScriptedService(): Promise<ScriptedService> {
  let reply: (request: ReceivedRequest) => ScriptedReply = () => ({ status: 500, body: {} })
  const requests: ReceivedRequest[] = []

  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const action = (body as { readonly Action?: unknown }).Action
      const target = String(request.headers['x-amz-target'] ?? action)
      const received = { target, path: request.url ?? '', body }
      requests.push(received)
      const answer = reply(received)
      if (answer === 'hang') return
      if (answer === 'reset') {
        request.socket.destroy()
      } else if (answer === 'trickle') {
        const timer = setInterval(() => response.writeProcessing(), 20)
        response.once('close', () => clearInterval(timer))
      } else if (answer === 'stall') {
        response.writeHead(200, { 'content-type': 'application/x-amz-json-1.1', 'content-length': '1000' })
        response.write('{"Entries":[')
      } else {
        response.writeHead(answer.status, { 'content-type': 'application/x-amz-json-1.1', ...answer.headers })
        response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    script: (next) => {
      requests.length = 0
      reply = typeof next === 'function' ? next : () => next
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  const isForm = request.headers['content-type']?.includes('x-www-form-urlencoded') === true
  return isForm ? Object.fromEntries(new URLSearchParams(text)) : (JSON.parse(text) as unknown)
}
