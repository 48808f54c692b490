import type { Decision } from '../front/entry-codec.js'
import { ACCOUNT, errorAnswer, isObject, jsonAnswer, jsonOf, nameOf, queueNameOf, text } from '../front/protocol.js'
import { batchOf, sqsBatchEntries, withBody } from '../front/sqs-entries.js'
import type { LocalService, ServiceRequest, ServiceResponse } from '../service.js'
import type { Fauxqs } from './fauxqs.js'
import { CONTENT, ENTRY_ID, messageProblem } from './message-problem.js'

/** How fauxqs names queues here; callers see the host that they called. */
const INNER_URL = `http://sqs.us-east-1.localhost/${ACCOUNT}/`

/** SQS as AWS has it: fauxqs, with the checks it lacks, and queue URLs of the local endpoint. */
export interface Sqs extends LocalService {
  /** Creates a queue, FIFO if its name ends in `.fifo`, unless it exists. */
  createQueue(name: string, attributes?: Readonly<Record<string, string>>): Promise<void>
  /** Delivers a message as a rule's target does: no fault touches it. Answers what went wrong, if anything did. */
  deliver(queueName: string, body: string, groupId?: string): Promise<string | undefined>
}

export function createSqs(fauxqs: Fauxqs): Sqs {
  const call = async (operation: string, body: unknown): Promise<ServiceResponse> =>
    fauxqs.handle({
      headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': `AmazonSQS.${operation}` },
      body: Buffer.from(JSON.stringify(body)),
    })

  async function deduplicatesByContent(queueName: string): Promise<boolean> {
    const answer = await call('GetQueueAttributes', {
      QueueUrl: INNER_URL + queueName,
      AttributeNames: ['ContentBasedDeduplication'],
    })
    const { Attributes } = JSON.parse(answer.body.toString()) as { Attributes?: Record<string, string> }
    return Attributes?.['ContentBasedDeduplication'] === 'true'
  }

  async function send(operation: string, request: ServiceRequest, body: Record<string, unknown>): Promise<ServiceResponse> {
    const queueName = queueNameOf(body['QueueUrl'])
    const inner = { ...body, QueueUrl: INNER_URL + queueName }
    if (operation === 'SendMessage') {
      const problem = messageProblem(body) ?? (await fifoProblem(queueName, [body]))
      return problem === undefined ? call(operation, inner) : errorAnswer('sqs', { ...problem, status: 400 })
    }

    const entries = batchOf(request)
    const badId = entries.find((entry) => !ENTRY_ID.test(text(entry['Id'])))
    if (badId !== undefined) {
      const message = 'A batch entry id can only contain alphanumeric characters, hyphens and underscores, at most 80 of them.'
      return errorAnswer('sqs', { name: 'InvalidBatchEntryId', status: 400, message })
    }
    const problem = await fifoProblem(queueName, entries)
    if (problem !== undefined) return errorAnswer('sqs', { ...problem, status: 400 })

    const decisions = new Map<number, Decision>()
    entries.forEach((entry, index) => {
      const wrong = messageProblem(entry)
      if (wrong !== undefined)
        decisions.set(index, { kind: 'error', code: wrong.name, message: wrong.message, senderFault: true })
    })
    // what refuses the whole request must be found before an entry is taken out of it
    if (decisions.size > 0 && (entries.length > 10 || !isDistinct(entries) || totalBytes(entries) > 1_048_576)) decisions.clear()
    const innerRequest = withBody(request, inner)
    const rest = decisions.size === 0 ? innerRequest : sqsBatchEntries.without(innerRequest, new Set(decisions.keys()))
    const answer = rest === undefined ? undefined : await call(operation, JSON.parse(rest.body.toString()))
    return sqsBatchEntries.answer(request, answer, decisions)
  }

  /** SQS refuses the whole request when a message for a FIFO queue lacks its group or its deduplication id. */
  async function fifoProblem(queueName: string, messages: readonly Record<string, unknown>[]) {
    if (!queueName.endsWith('.fifo')) return undefined
    if (messages.some((message) => text(message['MessageGroupId']) === '')) {
      return { name: 'MissingParameter', message: 'The request must contain the parameter MessageGroupId.' }
    }
    const lacks = messages.some((message) => text(message['MessageDeduplicationId']) === '')
    if (!lacks || (await deduplicatesByContent(queueName))) return undefined
    const message = 'The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly'
    return { name: 'InvalidParameterValue', message }
  }

  return {
    async handle(request) {
      const operation = (request.headers['x-amz-target'] ?? '').replace('AmazonSQS.', '')
      const body = jsonOf(request)
      if (body === undefined) {
        return errorAnswer('sqs', { name: 'SerializationException', status: 400, message: 'The request is not a JSON object.' })
      }
      if (operation === 'SendMessage' || operation === 'SendMessageBatch') return send(operation, request, body)
      if (operation === 'CreateQueue' && !/^[A-Za-z0-9_-]{1,80}$/.test(text(body['QueueName']).replace(/\.fifo$/, ''))) {
        const message = 'Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length'
        return errorAnswer('sqs', { name: 'InvalidParameterValue', status: 400, message })
      }
      const inner = 'QueueUrl' in body ? { ...body, QueueUrl: INNER_URL + queueNameOf(body['QueueUrl']) } : body
      return outward(operation, body, request.headers['host'] ?? '127.0.0.1', await call(operation, inner))
    },
    async createQueue(name, attributes = {}) {
      const answer = await call('CreateQueue', { QueueName: name, Attributes: attributes })
      if (answer.status !== 200) throw new Error(`queue "${name}" was not created: ${answer.body.toString()}`)
    },
    async deliver(queueName, body, groupId) {
      const message = {
        QueueUrl: INNER_URL + queueName,
        MessageBody: body,
        ...(groupId === undefined ? {} : { MessageGroupId: groupId }),
      }
      if (CONTENT.test(body)) return 'the body has characters that SQS refuses'
      const answer = await call('SendMessage', message)
      return answer.status === 200 ? undefined : answer.body.toString()
    },
    stop: () => fauxqs.stop(),
  }
}

/** Queue URLs as the caller reaches them, and no more message attributes than it asked for (fauxqs then returns all). */
function outward(operation: string, asked: Record<string, unknown>, host: string, answer: ServiceResponse): ServiceResponse {
  if (answer.status !== 200 || answer.body.length === 0) return answer
  const body = JSON.parse(answer.body.toString()) as Record<string, unknown>
  const url = (inner: unknown) => `http://${host}/${ACCOUNT}/${nameOf(inner)}`
  if (operation === 'CreateQueue' || operation === 'GetQueueUrl') return jsonAnswer('sqs', { QueueUrl: url(body['QueueUrl']) })
  if (operation === 'ListQueues' && Array.isArray(body['QueueUrls'])) {
    return jsonAnswer('sqs', { ...body, QueueUrls: body['QueueUrls'].map(url) })
  }
  const names = asked['MessageAttributeNames']
  if (operation !== 'ReceiveMessage' || (Array.isArray(names) && names.length > 0) || !Array.isArray(body['Messages']))
    return answer
  const attributes = ['MessageAttributes', 'MD5OfMessageAttributes']
  const messages = body['Messages']
    .filter(isObject)
    .map((message) => Object.fromEntries(Object.entries(message).filter(([field]) => !attributes.includes(field))))
  return jsonAnswer('sqs', { Messages: messages })
}

function isDistinct(entries: readonly Record<string, unknown>[]): boolean {
  return new Set(entries.map((entry) => entry['Id'])).size === entries.length
}

function totalBytes(entries: readonly Record<string, unknown>[]): number {
  return entries.reduce((sum, entry) => sum + messageBytes(entry), 0)
}

function messageBytes(message: Record<string, unknown>): number {
  const attributes = isObject(message['MessageAttributes']) ? Object.entries(message['MessageAttributes']) : []
  const parts = attributes.flatMap(([name, value]) => {
    const attribute = isObject(value) ? value : {}
    return [name, text(attribute['DataType']), text(attribute['StringValue']), text(attribute['BinaryValue'])]
  })
  return [text(message['MessageBody']), ...parts].reduce((sum, part) => sum + Buffer.byteLength(part), 0)
}
