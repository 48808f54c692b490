import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a custom resource answers CloudFormation. */
export interface DeploymentAnswer {
  readonly Status: 'SUCCESS' | 'FAILED'
  readonly PhysicalResourceId: string
  readonly Reason?: string
  readonly StackId: string
  readonly RequestId: string
  readonly LogicalResourceId: string
}

/** The address that CloudFormation hands to custom resources. */
export interface DeploymentAnswers {
  readonly url: string
  /** In the order they came. */
  readonly received: { readonly answer: DeploymentAnswer; readonly bytes: number; readonly contentType: string | undefined }[]
  /** Cuts so many of the connections that come next. */
  cut(connections: number): void
  stop(): Promise<void>
}

export async function startDeploymentAnswers(): Promise<DeploymentAnswers> {
  const received: DeploymentAnswers['received'] = []
  let cuts = 0
  const server = createServer((request, response) => {
    if (cuts > 0) {
      cuts--
      request.socket.destroy()
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const answer = JSON.parse(body.toString()) as DeploymentAnswer
      received.push({ answer, bytes: body.length, contentType: request.headers['content-type'] })
      response.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/answer`,
    received,
    cut: (connections) => void (cuts = connections),
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** As CloudFormation sends it. */
export const deploymentRequest = (url: string, more: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ResponseURL: url,
  StackId: 'arn:aws:cloudformation:eu-central-1:111122223333:stack/outbox-relay-orders/1',
  RequestId: 'request-1',
  LogicalResourceId: 'OutboxMigration',
  ResourceType: 'Custom::OutboxMigration',
  ...more,
})
