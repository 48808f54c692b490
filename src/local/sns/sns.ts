import type { Decision } from '../front/entry-codec.js'
import { errorAnswer, formOf } from '../front/protocol.js'
import { type SnsBatchEntry, snsBatchEntries, snsBatchOf } from '../front/sns-entries.js'
import type { LocalService, ServiceResponse } from '../service.js'
import { ENTRY_ID } from '../sqs/message-problem.js'
import type { Fauxqs } from '../sqs/fauxqs.js'

/** 256 KiB: what a topic takes unless its `MaximumMessageSize` says more. */
const MAX_BYTES = 262_144

/** SNS as AWS has it: fauxqs, with the checks it lacks. */
export interface Sns extends LocalService {
  /** Creates a topic, FIFO if its name ends in `.fifo`, unless it exists; answers its ARN. */
  createTopic(name: string): Promise<string>
  /** Subscribes a queue that receives each message as it was published, without SNS's envelope. */
  subscribe(topicArn: string, queueArn: string): Promise<void>
}

export function createSns(fauxqs: Fauxqs): Sns {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }

  async function call(fields: Readonly<Record<string, string>>): Promise<string> {
    const answer = await fauxqs.handle({ headers, body: Buffer.from(new URLSearchParams(fields).toString()) })
    if (answer.status !== 200) throw new Error(`${fields['Action'] ?? 'SNS'} failed: ${answer.body.toString()}`)
    return answer.body.toString()
  }

  return {
    async handle(request) {
      if (formOf(request).get('Action') !== 'PublishBatch') return fauxqs.handle(request)
      const entries = snsBatchOf(request)
      const refused = batchProblem(entries)
      if (refused !== undefined) return refused

      // fauxqs forgets an entry with an empty message: it would be in neither list of the answer
      const decisions = new Map<number, Decision>()
      entries.forEach(({ message }, index) => {
        if (message !== '') return
        decisions.set(index, {
          kind: 'error',
          code: 'InvalidParameter',
          message: 'Invalid parameter: Empty message',
          senderFault: true,
        })
      })
      const rest = snsBatchEntries.without(request, new Set(decisions.keys()))
      return snsBatchEntries.answer(request, rest === undefined ? undefined : await fauxqs.handle(rest), decisions)
    },
    async createTopic(name) {
      const fifo: Record<string, string> = name.endsWith('.fifo')
        ? { 'Attributes.entry.1.key': 'FifoTopic', 'Attributes.entry.1.value': 'true' }
        : {}
      const answer = await call({ Action: 'CreateTopic', Name: name, ...fifo })
      return /<TopicArn>(.*)<\/TopicArn>/.exec(answer)?.[1] ?? ''
    },
    async subscribe(topicArn, queueArn) {
      const raw = { 'Attributes.entry.1.key': 'RawMessageDelivery', 'Attributes.entry.1.value': 'true' }
      await call({ Action: 'Subscribe', TopicArn: topicArn, Protocol: 'sqs', Endpoint: queueArn, ...raw })
    },
    stop: () => Promise.resolve(),
  }
}

/** What SNS refuses a whole batch for, as far as fauxqs does not. */
function batchProblem(entries: readonly SnsBatchEntry[]): ServiceResponse | undefined {
  const refuse = (name: string, message: string) => errorAnswer('sns', { name, status: 400, message })
  const most = 'The batch request contains more entries than permissible (10).'
  if (entries.length === 0) return refuse('EmptyBatchRequest', "The batch request doesn't contain any entries.")
  if (entries.length > 10) return refuse('TooManyEntriesInBatchRequest', most)
  if (entries.some(({ id }) => !ENTRY_ID.test(id))) {
    return refuse(
      'InvalidBatchEntryId',
      'The Id of a batch entry in a batch request must be 1 to 80 letters, digits, "-" or "_".',
    )
  }
  if (new Set(entries.map(({ id }) => id)).size < entries.length) {
    return refuse('BatchEntryIdsNotDistinct', 'Two or more batch entries in the request have the same Id.')
  }
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
  if (bytes > MAX_BYTES)
    return refuse('BatchRequestTooLong', 'The length of all the batch messages put together is more than the limit.')
  return undefined
}
