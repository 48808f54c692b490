import { ExecuteStatementCommand, RDSDataClient, type ExecuteStatementCommandOutput } from '@aws-sdk/client-rds-data'
import { DeleteMessageCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs'
import type { LocalStackDescription } from '../../src/local/stack.js'
import { received, sdkOptions } from './local-services.js'

/** A service and a consumer that know no more than what `outbox local` prints. */
export interface OutboxClients {
  readonly rds: RDSDataClient
  readonly sqs: SQSClient
  execute(sql: string, parameters?: Readonly<Record<string, string>>): Promise<ExecuteStatementCommandOutput>
  /** The minimal write, with a destination if one is given. */
  insert(eventType: string, payload: string, destination?: string): Promise<void>
  /** Takes this many messages from a queue of the stack, in the order they came; fails after 30 s. */
  take(queue: string, count: number): Promise<readonly string[]>
  /** How many messages a queue of the stack holds. */
  waiting(queue: string): Promise<number>
  destroy(): void
}

export function outboxClients({ endpoint, resourceArn, secretArn, database, queues }: LocalStackDescription): OutboxClients {
  const rds = new RDSDataClient(sdkOptions(endpoint))
  const sqs = new SQSClient(sdkOptions(endpoint))
  const execute = (sql: string, parameters: Readonly<Record<string, string>> = {}) =>
    rds.send(
      new ExecuteStatementCommand({
        resourceArn,
        secretArn,
        database,
        sql,
        parameters: Object.entries(parameters).map(([name, stringValue]) => ({ name, value: { stringValue } })),
      }),
    )
  return {
    rds,
    sqs,
    execute,
    async insert(type, payload, destination) {
      if (destination === undefined) {
        await execute('INSERT INTO outbox (event_type, payload) VALUES (:type, :payload)', { type, payload })
      } else {
        const sql = 'INSERT INTO outbox (event_type, payload, destination) VALUES (:type, :payload, :destination)'
        await execute(sql, { type, payload, destination })
      }
    },
    async take(queue, count) {
      const QueueUrl = queues[queue]!
      const taken: string[] = []
      const giveUpAt = performance.now() + 30_000
      while (taken.length < count) {
        if (performance.now() > giveUpAt)
          throw new Error(`${taken.length} of ${count} messages came to ${queue}: ${taken.join('\n')}`)
        for (const { Body, ReceiptHandle } of await received(sqs, QueueUrl, 1)) {
          taken.push(Body!)
          await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
        }
      }
      return taken
    },
    async waiting(queue) {
      const AttributeNames = ['ApproximateNumberOfMessages'] as const
      const { Attributes } = await sqs.send(
        new GetQueueAttributesCommand({ QueueUrl: queues[queue], AttributeNames: [...AttributeNames] }),
      )
      return Number(Attributes!['ApproximateNumberOfMessages'])
    },
    destroy() {
      rds.destroy()
      sqs.destroy()
    },
  }
}
