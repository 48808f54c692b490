import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ScriptedCall {
  /** e.g. `Execute`, `BeginTransaction`: the last part of the path. */
  readonly operation: string
  readonly body: string
}

export type ScriptedReply =
  | { readonly answer: object | string; readonly status?: number }
  | { readonly error: string; readonly status: number; readonly message?: string }
  /** The connection is cut without an answer. */
  | 'reset'
  /** Headers and the first bytes of an answer, and then the connection is cut. */
  | 'truncated'
  /** No answer until the client gives up. */
  | 'hang'
  /** Headers, and never a body. */
  | 'stall'

export interface ScriptedDataApi {
  readonly endpoint: string
  readonly calls: ScriptedCall[]
  stop(): Promise<void>
}

/** A server that answers call n with the n-th reply and every further one with the last: for failures a real server seldom has. */
export async function startScriptedDataApi(replies: readonly ScriptedReply[]): Promise<ScriptedDataApi> {
  const calls: ScriptedCall[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const body = await read(request)
      calls.push({ operation: request.url?.split('/').pop() ?? '', body })
      reply(replies[Math.min(calls.length, replies.length) - 1]!, response)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

function reply(it: ScriptedReply, response: ServerResponse): void {
  if (it === 'hang') return
  if (it === 'reset') {
    response.destroy()
    return
  }
  response.setHeader('content-type', 'application/json')
  if (it === 'truncated' || it === 'stall') {
    response.setHeader('content-length', '100')
    response.write('{"rec', () => {
      if (it === 'truncated') response.destroy()
    })
    return
  }
  if ('error' in it) {
    response.writeHead(it.status, { 'x-amzn-errortype': it.error })
    response.end(JSON.stringify(it.message === undefined ? {} : { message: it.message }))
    return
  }
  response.writeHead(it.status ?? 200)
  response.end(typeof it.answer === 'string' ? it.answer : JSON.stringify(it.answer))
}
