import { errorAnswer, jsonAnswer, jsonOf, nameOf } from '../front/protocol.js'
import type { LocalService } from '../service.js'
import type { Sqs } from '../sqs/sqs.js'
import type { Bus } from './buses.js'
import { isFunctionArn, newBus } from './buses.js'
import { OPERATIONS } from './operations.js'
import type { Deliver } from './put-events.js'
import { putEvents } from './put-events.js'
import { ServiceError } from './service-error.js'

/** EventBridge ("Classic") as far as an outbox needs it: buses, rules, targets, and every check of `PutEvents`. */
export interface EventBridge extends LocalService {
  /** Creates a bus with a rule that sends every event to a queue. */
  createBus(name: string, targetQueueArn: string): void
  /** Creates a rule with one target, on a bus that is there. */
  createRule(bus: string, name: string, eventPattern: object, targetArn: string): void
}

/** Begins an invocation of a function. Nobody waits for it, and it never throws. */
export type InvokeFunction = (name: string, event: unknown) => void

/** `log` is told what a target refused: on AWS that goes to the rule's dead-letter queue, or nowhere. */
export function createEventBridge(sqs: Pick<Sqs, 'deliver'>, invoke: InvokeFunction, log: (line: string) => void): EventBridge {
  const buses = new Map<string, Bus>([['default', newBus('default')]])

  const deliver: Deliver = async (target, envelope) => {
    if (isFunctionArn(target.Arn)) {
      invoke(nameOf(target.Arn), JSON.parse(envelope))
      return
    }
    const problem = await sqs.deliver(nameOf(target.Arn), envelope, target.SqsParameters?.MessageGroupId)
    if (problem !== undefined) log(`EventBridge: target ${target.Arn} refused an event: ${problem}`)
  }

  async function run(operation: string, body: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (operation === 'PutEvents') return putEvents(body, buses, deliver)
    const known = OPERATIONS[operation]
    if (known === undefined)
      throw new ServiceError('UnknownOperationException', `the local stack has no EventBridge operation ${operation}`)
    return known(buses, body)
  }

  function createRule(bus: string, name: string, eventPattern: object, targetArn: string): void {
    OPERATIONS['PutRule']?.(buses, { EventBusName: bus, Name: name, EventPattern: JSON.stringify(eventPattern) })
    OPERATIONS['PutTargets']?.(buses, { EventBusName: bus, Rule: name, Targets: [{ Id: 'target', Arn: targetArn }] })
  }

  return {
    async handle(request) {
      const operation = (request.headers['x-amz-target'] ?? '').replace('AWSEvents.', '')
      const body = jsonOf(request)
      if (body === undefined) {
        return errorAnswer('events', {
          name: 'SerializationException',
          status: 400,
          message: 'The request is not a JSON object.',
        })
      }
      try {
        return jsonAnswer('events', await run(operation, body))
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        return errorAnswer('events', { name: error.name, status: error.status, message: error.message })
      }
    },
    createBus(name, targetQueueArn) {
      if (!buses.has(name)) OPERATIONS['CreateEventBus']?.(buses, { Name: name })
      createRule(name, 'all', { source: [{ prefix: '' }] }, targetQueueArn)
    },
    createRule,
    stop: () => Promise.resolve(),
  }
}
