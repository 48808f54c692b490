import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigurationError } from '../../core/errors.js'
import type { Reply } from '../front/front.js'
import type { ServiceRequest } from '../service.js'

/** 8 MiB: twice what any service behind the endpoint takes, so that the service itself can say no. */
const MAX_BODY_BYTES = 8 * 1024 * 1024

export interface Endpoint {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly port: number
  /** Ends all connections at once. */
  stop(): Promise<void>
}

/**
 * Listens on 127.0.0.1 and hands each request, read whole, to `handle`.
 *
 * @throws ConfigurationError if the port is taken.
 */
export async function startEndpoint(port: number, handle: (request: ServiceRequest) => Promise<Reply>): Promise<Endpoint> {
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing, handle))
  // longer than any SDK keeps an idle connection: the default of 5 s ends connections that a client is about to use again
  server.keepAliveTimeout = 120_000

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE'
      reject(inUse ? new ConfigurationError('port', `port ${port} is in use: give another, or 0 for any free one`) : error)
    })
    server.listen(port, '127.0.0.1', resolve)
  })

  const actual = (server.address() as AddressInfo).port
  return {
    url: `http://127.0.0.1:${actual}`,
    port: actual,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function serve(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  handle: (request: ServiceRequest) => Promise<Reply>,
): Promise<void> {
  try {
    // browsers send it with every request that a page could make elsewhere; no SDK does. A page must not reach the database
    if (incoming.headers.origin !== undefined) {
      answer(outgoing, 403, { message: 'requests of web pages (with an Origin header) are refused' })
      return
    }
    const body = await read(incoming)
    if (body === undefined) {
      answer(outgoing, 413, { message: `the request has more than ${MAX_BODY_BYTES} bytes` })
      return
    }
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
    )
    const reply = await handle({ method: incoming.method ?? 'GET', path: incoming.url ?? '/', headers, body })
    if (reply === 'cut') {
      incoming.socket.resetAndDestroy()
      return
    }
    outgoing.writeHead(reply.status, { ...reply.headers, 'content-length': Buffer.byteLength(reply.body) })
    outgoing.end(reply.body)
  } catch (error) {
    // a caller that went away mid-request is no error of ours
    if (incoming.socket.destroyed) return
    answer(outgoing, 500, { message: `the local endpoint failed: ${error instanceof Error ? error.message : String(error)}` })
  }
}

async function read(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function answer(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  outgoing.end(JSON.stringify(body))
}
