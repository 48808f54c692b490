import { EventBridgeClient } from '@aws-sdk/client-eventbridge'
import { SNSClient } from '@aws-sdk/client-sns'
import { GetQueueUrlCommand, ReceiveMessageCommand, SQSClient, type Message } from '@aws-sdk/client-sqs'
import { createSecretsManager } from '../../src/local/secrets/secrets-manager.js'
import type { LocalService } from '../../src/local/service.js'
import { startServices, type Services } from '../../src/local/stack/services.js'

/** SQS, SNS and EventBridge behind an endpoint, and plain SDK clients that know nothing of it but its URL. */
export interface TestServices extends Services {
  readonly sqsClient: SQSClient
  readonly snsClient: SNSClient
  readonly eventsClient: EventBridgeClient
  /** What rules brought to functions, in order. */
  readonly invoked: readonly { readonly name: string; readonly event: unknown }[]
  /** Creates a queue and answers its URL as the caller sees it. */
  queue(name: string): Promise<string>
  /** A bus whose every event arrives in this queue. */
  bus(name: string): Promise<string>
}

const noDatabase: LocalService = {
  handle: () => Promise.resolve({ status: 501, headers: {}, body: '' }),
  stop: () => Promise.resolve(),
}

/** Clients for an endpoint, without retries: a test sees each answer. */
export function sdkOptions(endpoint: string) {
  return { endpoint, region: 'us-east-1', credentials: { accessKeyId: 'any', secretAccessKey: 'any' }, maxAttempts: 1 }
}

export async function startTestServices(dataApi: LocalService = noDatabase): Promise<TestServices> {
  const invoked: { readonly name: string; readonly event: unknown }[] = []
  const services = await startServices({
    port: 0,
    dataApi,
    secretsManager: createSecretsManager({ rotate: () => Promise.resolve(), log: () => undefined }),
    control: () => Promise.resolve({ status: 404, headers: {}, body: '' }),
    resourceOf: (name) => (name === 'fifo' ? 'fifo.fifo' : name),
    invokeFunction: (name, event) => invoked.push({ name, event }),
    log: () => undefined,
  })
  const options = sdkOptions(services.endpoint.url)
  const sqsClient = new SQSClient(options)
  const clients = [sqsClient, new SNSClient(options), new EventBridgeClient(options)] as const
  const queue = async (name: string) => {
    await services.sqs.createQueue(name)
    return (await sqsClient.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl!
  }
  return {
    ...services,
    invoked,
    sqsClient,
    snsClient: clients[1],
    eventsClient: clients[2],
    queue,
    async bus(name) {
      const url = await queue(`${name}-target`)
      services.eventBridge.createBus(name, `arn:aws:sqs:us-east-1:000000000000:${name}-target`)
      return url
    },
    async stop() {
      clients.forEach((client) => client.destroy())
      await services.stop()
    },
  }
}

/** What is in a queue now, up to 10 messages; waits up to a second for the first. */
export async function received(client: SQSClient, queueUrl: string, waitSeconds = 0): Promise<readonly Message[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: waitSeconds,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['All'],
    }),
  )
  return Messages
}

/** The bodies of what is in a queue now. */
export async function bodies(client: SQSClient, queueUrl: string): Promise<readonly string[]> {
  return (await received(client, queueUrl)).map(({ Body }) => Body!)
}
