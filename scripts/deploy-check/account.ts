import { CreateEventBusCommand, EventBridgeClient, PutRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge'
import { CreateQueueCommand, DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { ACCOUNT, REGION } from '../../src/local/front/protocol.js'
import { credentials } from './cdk.js'
import { until } from './steps.js'

export interface Queue {
  readonly url: string
  readonly arn: string
}

/** What an account has before the stack comes, and what can be seen in it, through the services' own API. */
export interface Account {
  queue(name: string): Promise<Queue>
  /** A bus whose rule sends the events of `source` to a queue, which is returned. */
  bus(name: string, source: string): Promise<{ readonly arn: string; readonly target: Queue }>
  /** Waits until the event has arrived in the queue, takes it off, and answers with the message's body. */
  received(queue: Queue, eventId: string, seconds: number): Promise<string>
  /** The reasons in a stack's events, newest first. */
  stackEvents(stackName: string): Promise<readonly string[]>
  /** `undefined`: there is no such stack. */
  stackStatus(stackName: string): Promise<string | undefined>
}

export function openAccount(endpoint: string, signal: AbortSignal): Account {
  const options = { endpoint, region: REGION, credentials }
  const sqs = new SQSClient(options)
  const events = new EventBridgeClient(options)

  async function queue(name: string): Promise<Queue> {
    const { QueueUrl = '' } = await sqs.send(new CreateQueueCommand({ QueueName: name }))
    return { url: QueueUrl, arn: `arn:aws:sqs:${REGION}:${ACCOUNT}:${name}` }
  }

  return {
    queue,
    async bus(name, source) {
      const target = await queue(`${name}-target`)
      const { EventBusArn = '' } = await events.send(new CreateEventBusCommand({ Name: name }))
      const rule = { EventBusName: name, Name: 'all' }
      await events.send(new PutRuleCommand({ ...rule, EventPattern: JSON.stringify({ source: [source] }) }))
      await events.send(
        new PutTargetsCommand({ EventBusName: name, Rule: rule.Name, Targets: [{ Id: 'queue', Arn: target.arn }] }),
      )
      return { arn: EventBusArn, target }
    },
    received: ({ url }, eventId, seconds) =>
      until(`event ${eventId} in ${url}`, seconds, signal, async () => {
        const { Messages = [] } = await sqs.send(
          new ReceiveMessageCommand({ QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
        )
        for (const { ReceiptHandle } of Messages) await sqs.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }))
        return Messages.find(({ Body }) => Body?.includes(eventId))?.Body
      }),
    async stackEvents(stackName) {
      const xml = await cloudFormation(endpoint, { Action: 'DescribeStackEvents', StackName: stackName })
      return textsIn(xml, 'ResourceStatusReason')
    },
    async stackStatus(stackName) {
      const xml = await cloudFormation(endpoint, { Action: 'DescribeStacks', StackName: stackName })
      return textsIn(xml, 'StackStatus')[0]
    },
  }
}

/** Two read-only calls, for which a client of its own would be one more dependency; MiniStack asks for no signature. */
async function cloudFormation(endpoint: string, parameters: Readonly<Record<string, string>>): Promise<string> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/${REGION}/cloudformation/aws4_request, SignedHeaders=host, Signature=0`,
    },
    body: new URLSearchParams({ ...parameters, Version: '2010-05-15' }),
  })
  return response.text()
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", '#39': "'", '#x27': "'", amp: '&' }

const textsIn = (xml: string, element: string): readonly string[] =>
  [...xml.matchAll(new RegExp(`<${element}>([^<]*)</${element}>`, 'g'))].map(([, text = '']) =>
    text.replace(/&([^;]+);/g, (whole, name: string) => entities[name] ?? whole),
  )
