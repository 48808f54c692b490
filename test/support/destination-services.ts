import { CreateEventBusCommand, EventBridgeClient, PutRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge'
import { CreateTopicCommand, SNSClient, SubscribeCommand } from '@aws-sdk/client-sns'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { startEndpoint } from '../../src/local/endpoint/endpoint.js'
import { Faults } from '../../src/local/faults/faults.js'
import { createFront } from '../../src/local/front/front.js'
import type { LocalService } from '../../src/local/service.js'
import { sdkOptions, startTestServices, type TestServices } from './local-services.js'

/** What a publisher needs of an account: its own, or one that somebody else emulates. */
export type DestinationServices = Pick<
  TestServices,
  'faults' | 'sqsClient' | 'snsClient' | 'eventsClient' | 'queue' | 'bus' | 'stop'
> & {
  readonly endpoint: { readonly url: string }
  readonly sqs: Pick<TestServices['sqs'], 'createQueue'>
  readonly sns: Pick<TestServices['sns'], 'createTopic' | 'subscribe'>
}

export type ProviderName = 'the local stack' | 'MiniStack' | 'LocalStack' | 'another endpoint'

export interface Provider {
  readonly name: ProviderName
  /** Undefined: the services of the local stack, started for each suite. */
  readonly endpoint?: string
  /** How long a queue is watched for what may still come, in seconds: ours has everything by the time it answers. */
  readonly settleSeconds: number
}

/** Who serves SQS, SNS and EventBridge in this run: what `OUTBOX_TEST_AWS_ENDPOINT` names, else the local stack. */
export async function findProvider(): Promise<Provider> {
  const endpoint = process.env['OUTBOX_TEST_AWS_ENDPOINT']
  if (endpoint === undefined) return { name: 'the local stack', settleSeconds: 0 }
  const answers = async (path: string) => (await fetch(endpoint + path).catch(() => undefined))?.ok === true
  // MiniStack answers LocalStack's path too
  const name = (await answers('/_ministack/health'))
    ? 'MiniStack'
    : (await answers('/_localstack/health'))
      ? 'LocalStack'
      : 'another endpoint'
  return { name, endpoint, settleSeconds: 1 }
}

/** Starts the services; those of another endpoint stand behind our front, so that faults can be injected there too. */
export async function startDestinationServices({ name, endpoint }: Provider): Promise<DestinationServices> {
  if (endpoint === undefined) return startTestServices()
  // every suite makes queues of the same names
  if (name === 'MiniStack') await fetch(`${endpoint}/_ministack/reset`, { method: 'POST' })

  const upstream = forwardTo(endpoint)
  const faults = new Faults((destination) => destination)
  const front = createFront(
    { sqs: upstream, sns: upstream, events: upstream, 'rds-data': upstream, secretsmanager: upstream, sts: upstream },
    faults,
  )
  const server = await startEndpoint(0, (request) => front.handle(request))
  const direct = sdkOptions(endpoint)
  const admin = [new SQSClient(direct), new SNSClient(direct), new EventBridgeClient(direct)] as const
  const [sqs, sns, events] = admin
  const through = sdkOptions(server.url)
  const clients = [new SQSClient(through), new SNSClient(through), new EventBridgeClient(through)] as const
  const arnOf = (queue: string) => `arn:aws:sqs:us-east-1:000000000000:${queue}`
  const queue = async (queueName: string, attributes: Readonly<Record<string, string>> = {}) => {
    await sqs.send(new CreateQueueCommand({ QueueName: queueName, Attributes: { ...attributes } }))
    return `${server.url}/000000000000/${queueName}`
  }
  return {
    endpoint: server,
    faults,
    sqsClient: clients[0],
    snsClient: clients[1],
    eventsClient: clients[2],
    queue,
    async bus(busName) {
      const url = await queue(`${busName}-target`)
      const rule = { EventBusName: busName, Name: 'all' }
      await events.send(new CreateEventBusCommand({ Name: busName }))
      await events.send(new PutRuleCommand({ ...rule, EventPattern: '{"version":["0"]}' }))
      await events.send(
        new PutTargetsCommand({
          EventBusName: busName,
          Rule: 'all',
          Targets: [{ Id: 'queue', Arn: arnOf(`${busName}-target`) }],
        }),
      )
      return url
    },
    sqs: {
      createQueue: async (queueName, attributes) => {
        await queue(queueName, attributes)
      },
    },
    sns: {
      async createTopic(topicName) {
        const Attributes = topicName.endsWith('.fifo') ? { FifoTopic: 'true' } : undefined
        return (await sns.send(new CreateTopicCommand({ Name: topicName, Attributes }))).TopicArn!
      },
      async subscribe(TopicArn, Endpoint) {
        const Attributes = { RawMessageDelivery: 'true' }
        await sns.send(new SubscribeCommand({ TopicArn, Protocol: 'sqs', Endpoint, Attributes }))
      },
    },
    async stop() {
      for (const client of [...admin, ...clients]) client.destroy()
      await server.stop()
    },
  }
}

function forwardTo(endpoint: string): LocalService {
  return {
    async handle({ method, path, headers, body }) {
      const { host: _host, connection: _connection, 'content-length': _length, expect: _expect, ...rest } = headers
      const answer = await fetch(endpoint + path, {
        method,
        headers: rest,
        ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
      })
      const {
        'content-encoding': _encoding,
        'transfer-encoding': _transfer,
        'content-length': _size,
        ...kept
      } = Object.fromEntries(answer.headers)
      return { status: answer.status, headers: kept, body: Buffer.from(await answer.arrayBuffer()) }
    },
    stop: () => Promise.resolve(),
  }
}
